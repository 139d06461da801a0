// The latest predictions as questions that a newcomer can read, held still while somebody reads them.

import { get, isLeft, ofGraph } from "./api.js";
import { askRoute, emptyState, entityLink, fill, h, name, setText } from "./dom.js";
import * as format from "./format.js";
import { known, news } from "./store.js";

const SHOWN = 6;
const BEAT = 1200; // milliseconds between two new rows

/** The section with the latest predictions of a graph. */
export function feed(graph, signal) {
  const rows = new Map(); // by id: {row, element}, the newest last
  const list = h("ol", { class: "predictions", "aria-label": "Latest predictions, newest first" });
  const empty = h(
    "div",
    {},
    emptyState(
      "No query has been answered yet.",
      "Send one with the form, or from a terminal:",
      `adatkg ask ${shell(graph)} SUBJECT RELATION`,
    ),
    h("p", {}, h("a", { class: "button", href: askRoute(graph) }, "Ask a question")),
  );
  const button = h(
    "button",
    { type: "button", class: "quiet", "aria-pressed": "false", on: { click: toggle } },
    "Pause",
  );
  const state = h("span", { class: "hint" });
  const section = h(
    "section",
    { class: "feed", "aria-labelledby": "feed-title" },
    h(
      "div",
      { class: "section-head" },
      h("div", {}, h("h2", { id: "feed-title" }, "Latest predictions"), state),
      button,
    ),
    empty,
    list,
  );
  let paused = false;
  let reading = false;
  let waiting = null; // the newest one that is not shown yet
  let left = 0; // that came while nothing moved

  function toggle() {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    setText(button, paused ? "Go on" : "Pause");
    beat();
  }

  function add(row) {
    if (rows.has(row.id)) return;
    const element = item(graph, row);
    rows.set(row.id, { row, element });
    list.prepend(element);
    while (rows.size > SHOWN) {
      const [oldest, { element: gone }] = rows.entries().next().value;
      gone.remove();
      rows.delete(oldest);
    }
    empty.hidden = true;
  }

  function beat() {
    const held = paused || reading;
    if (!held && waiting) {
      add(waiting);
      waiting = null;
      left = 0;
    }
    setText(
      state,
      held
        ? `Held still${paused ? "" : " while you read"}${left ? `; ${format.plural(left, "newer one")}` : ""}`
        : "A sample, with the truth once it comes",
    );
  }

  const hold = (held) => () => {
    reading = held;
    beat();
  };
  list.addEventListener("pointerenter", (event) => {
    if (event.pointerType === "mouse") hold(true)();
  });
  list.addEventListener("pointerleave", hold(false));
  list.addEventListener("focusin", hold(true));
  list.addEventListener("focusout", hold(false));

  news.addEventListener(
    "prediction",
    ({ detail: row }) => {
      if (row.graph !== graph) return;
      waiting = row;
      left += 1;
    },
    { signal },
  );
  news.addEventListener(
    "truth",
    ({ detail: truth }) => {
      const shown = rows.get(truth.id);
      if (!shown || truth.graph !== graph) return;
      const row = known.rows.get(truth.id) ?? { ...shown.row, truths: [...(shown.row.truths ?? []), truth] };
      shown.row = row;
      settle(graph, shown.element, row);
    },
    { signal },
  );
  const timer = setInterval(beat, BEAT);
  signal.addEventListener("abort", () => clearInterval(timer));

  async function begin() {
    try {
      const { predictions } = await get(ofGraph(graph, "predictions"), {}, signal);
      for (const row of predictions.slice(0, SHOWN).reverse()) add(row);
    } catch (error) {
      if (!isLeft(error) && !rows.size) setText(state, error.message);
    }
  }
  news.addEventListener(
    "connection",
    ({ detail }) => {
      if (detail === "live") begin();
    },
    { signal },
  );
  begin();
  beat();
  return section;
}

/** The question in words: whom will S r, or who will r O, at which time. */
export function question(graph, row) {
  const relation = h("em", { class: "relation" }, name(row.r));
  const time = h("span", { class: "when" }, `${format.onTime(row.t, row.t_iso)}?`);
  return row.o === null || row.o === undefined
    ? ["Whom will ", entityLink(graph, row.s), " ", relation, " ", time]
    : ["Who will ", relation, " ", entityLink(graph, row.o), " ", time];
}

/** A candidate with its probability as a bar. */
export function bar(probability) {
  const inner = h("span", { class: "bar-fill" });
  inner.style.width = `${Math.max(0, Math.min(1, probability ?? 0)) * 100}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, inner);
}

function item(graph, row) {
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

/** Show what really happened, as far as it is known. */
function settle(graph, element, row) {
  const truths = row.truths ?? [];
  const came = new Set(truths.map((truth) => truth.entity));
  for (const candidate of element.querySelectorAll(".candidates > li")) {
    candidate.classList.toggle("true", came.has(candidate.dataset.entity));
  }
  const line = element.querySelector(".truth");
  line.classList.toggle("known", truths.length > 0);
  if (!truths.length) {
    fill(line, "The truth has not come yet.");
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

/** A graph's name as one word of a shell. */
function shell(text) {
  return /^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
