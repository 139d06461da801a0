// The answer to a question of one's own, with what it rests on.

import { bar, question } from "./card.js";
import { entityLink, h, name } from "./dom.js";
import * as format from "./format.js";

/** A card with the ranking. */
export function answerCard(graph, prediction) {
  const { query: asked, top, model, late } = prediction;
  // Predictions of 0.2 name neither: then the time is as it was asked, or the one that the answer rests on.
  const tick = prediction.tick ?? (Number.isInteger(asked.t) ? asked.t : late ? null : prediction.as_of);
  const iso = prediction.time ?? (typeof asked.t === "string" && asked.t !== "next" ? asked.t : null);
  const row = { s: asked.s, r: asked.r, o: asked.o, t: tick, t_iso: iso };
  return h(
    "section",
    { class: "card", "aria-labelledby": "answer-title" },
    h("h2", { id: "answer-title", class: "question" }, question(graph, row)),
    h("p", {}, explain(asked.s ?? asked.o, prediction)),
    ranking(graph, top),
    h(
      "p",
      { class: "hint" },
      "Answered by ",
      h("code", {}, model),
      late ? ". The time had passed when it was asked, so it is answered as of the stream's date." : ".",
    ),
  );
}

function ranking(graph, top) {
  const heads = ["Rank", "Entity", "Probability"].map((head) => h("th", { scope: "col" }, head));
  const rows = top.map((one, i) =>
    h(
      "tr",
      {},
      h("td", { class: "numeric" }, String(i + 1)),
      h("th", { scope: "row" }, entityLink(graph, one.entity)),
      h(
        "td",
        {},
        h(
          "span",
          { class: "with-bar" },
          bar(one.probability),
          h("span", { class: "probability" }, format.share(one.probability)),
        ),
      ),
    ),
  );
  return h("table", { class: "ranking" }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows));
}

/** Cold start and gate in a sentence. */
function explain(given, { cold_start: cold, gate, interactions }) {
  return cold
    ? [
        h("span", { class: "badge new" }, "newcomer"),
        " ",
        h("b", {}, name(given)),
        " has never been seen in this graph. Its memory is empty and the gate is closed, " +
          "so the answer rests on its name and on what entities with similar names did.",
      ]
    : [
        h("b", {}, name(given)),
        ` has been seen in ${format.plural(interactions, "fact")}. ` +
          `The gate stands at ${format.score(gate)}: so much of its memory is blended with what its name says.`,
      ];
}
