// A prediction as a card: what was asked, the likeliest answers, and what came.

import { entityLink, fill, h, name, time } from "./dom.js";
import * as format from "./format.js";

/** The question as the fact that it is, with the unknown in its place: words that fit any relation. */
export function question(graph, row) {
  const asked = h("b", { class: "unknown", title: "What is asked for" }, "?");
  const [subject, object] = isGiven(row.o) ? [asked, entityLink(graph, row.o)] : [entityLink(graph, row.s), asked];
  return triple(subject, h("em", { class: "relation" }, name(row.r)), object, aboutTime(row));
}

/** Subject, relation, object and what else there is, with points between them. */
export function triple(...parts) {
  return parts
    .filter((part) => part !== null)
    .flatMap((part, i) => (i ? [h("span", { class: "point" }, "\u00a0· "), part] : [part]));
}

/** When: a time, or as the next thing that happens until one. */
function aboutTime(row) {
  if (row.asked_next && (row.until_iso || isGiven(row.until)))
    return h("span", { class: "when" }, "next, until ", time(row.until, row.until_iso));
  return isGiven(row.t) || row.t_iso ? h("span", { class: "when" }, time(row.t, row.t_iso)) : null;
}

const isGiven = (value) => value !== null && value !== undefined;

/** A candidate with its probability as a bar. */
export function bar(probability) {
  const inner = h("span", { class: "bar-fill" });
  inner.style.width = `${Math.max(0, Math.min(1, probability ?? 0)) * 100}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, inner);
}

/** The card of a row. */
export function predictionCard(graph, row) {
  const element = h(
    "li",
    { class: "card prediction", data: { id: row.id } },
    h(
      "p",
      { class: "question" },
      question(graph, row),
      row.cold_start
        ? h("span", { class: "badge new", title: "Never seen before: answered from its name alone" }, "newcomer")
        : null,
      row.late ? h("span", { class: "badge", title: "About a time that had passed when it was asked" }, "late") : null,
    ),
    h(
      "ol",
      { class: "candidates" },
      row.top.map((one, i) =>
        h(
          "li",
          { data: { entity: one.entity } },
          h("span", { class: "place" }, String(i + 1)),
          h("span", { class: "candidate", title: one.entity }, entityLink(graph, one.entity)),
          bar(one.probability),
          h("span", { class: "probability" }, format.share(one.probability)),
        ),
      ),
    ),
    h("p", { class: "truth" }),
  );
  settle(graph, element, row);
  return element;
}

/** Show in a card what really happened, as far as it is known. */
export function settle(graph, element, row) {
  const truths = row.truths ?? [];
  const came = new Set(truths.map((truth) => truth.entity));
  for (const candidate of element.querySelectorAll(".candidates > li")) {
    candidate.classList.toggle("true", came.has(candidate.dataset.entity));
  }
  const line = element.querySelector(".truth");
  line.classList.toggle("known", truths.length > 0);
  if (!truths.length) {
    fill(line, row.ended ? `Nothing within ${row.within ?? "its time"}.` : "Not come yet.");
    return;
  }
  const shown = truths.slice(0, 3);
  fill(
    line,
    h("span", { class: "came" }, "It was "),
    shown.map((truth, i) => [
      i ? "; " : null,
      entityLink(graph, truth.entity),
      " ",
      h(
        "span",
        { class: ["rank", truth.rank !== null && truth.rank <= row.top.length ? "hit" : ""].join(" ").trim() },
        format.rank(truth.rank),
      ),
      truth.heuristic_rank === undefined
        ? null
        : h("span", { class: "other" }, ` (heuristic: ${format.rank(truth.heuristic_rank)})`),
    ]),
    truths.length > shown.length ? ` and ${truths.length - shown.length} more` : null,
  );
}
