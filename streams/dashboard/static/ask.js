// A question of one's own: a fact with its subject or its object left open.

import { answerCard } from "./answer.js";
import { get, isLeft, ofGraph, post } from "./api.js";
import { triple } from "./card.js";
import { choice } from "./choice.js";
import { combobox } from "./combobox.js";
import { emptyState, fill, h, name, problem, setText } from "./dom.js";
import { lookUp, unknownEntity, unknownRelation } from "./meant.js";
import { graphNow, news } from "./store.js";

const LARGEST = 50; // candidates that may be asked for
const DIRECTIONS = [
  ["subject", "Subject · relation · ?"], // by what is given
  ["object", "? · relation · object"],
];

export function open(main, { graph, query }, signal) {
  let direction = query.has("object") ? "object" : "subject";
  let newcomer = null; // a name that is to be asked about though nobody knows it
  const find = (kind) => async (text, ended) =>
    (await get(ofGraph(graph, "names"), { kind, q: text, limit: 10 }, ended)).names;
  const entity = combobox({
    id: "ask-entity",
    label: "Subject",
    value: query.get("subject") ?? query.get("object") ?? "",
    find: find("entity"),
    signal,
  });
  const relation = combobox({
    id: "ask-relation",
    label: "Relation",
    value: query.get("relation") ?? "",
    find: find("relation"),
    signal,
  });
  const time = h("input", {
    id: "ask-time",
    type: "text",
    value: query.get("time") ?? "next",
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "ask-time-hint",
  });
  const size = h("input", {
    id: "ask-k",
    type: "number",
    min: "1",
    max: String(LARGEST),
    value: query.get("k") ?? "10",
    required: true,
  });
  const timeHint = h("p", { class: "hint", id: "ask-time-hint" });
  const preview = h("p", { class: "preview question" });
  const doubts = h("div", {});
  const answer = h("div", { class: "answer", "aria-live": "polite" });
  const send = h("button", { type: "submit" }, "Ask");
  const form = h(
    "form",
    { class: "card ask", "aria-label": "Question", on: { submit: ask, input: describe, change: describe } },
    choice({
      legend: "What is asked for",
      name: "direction",
      options: DIRECTIONS,
      chosen: direction,
      change: turn,
      showLegend: true,
    }),
    entity.element,
    relation.element,
    h(
      "div",
      { class: "two" },
      h(
        "div",
        { class: "field" },
        h("label", { for: "ask-time" }, "Time"),
        time,
        timeHint,
      ),
      h("div", { class: "field" }, h("label", { for: "ask-k" }, "Candidates"), size),
    ),
    preview,
    doubts,
    h("div", { class: "actions" }, send),
  );
  fill(
    main,
    h(
      "div",
      { class: "page-head" },
      h(
        "div",
        {},
        h("h1", { tabindex: "-1" }, "Ask ", name(graph)),
        h(
          "p",
          { class: "hint" },
          "The question goes through the stream like any other, and changes nothing that the model knows. " +
            "Names never seen before are welcome.",
        ),
      ),
    ),
    h("div", { class: "ask-page" }, form, answer),
  );
  turn(direction);
  hintAtTimes();
  news.addEventListener("overview", hintAtTimes, { signal });
  fill(
    answer,
    emptyState("The answer appears here.", "Type a few letters of a name: the arrow keys choose, Enter takes."),
  );

  function turn(value) {
    direction = value;
    setText(entity.element.querySelector("label"), direction === "subject" ? "Subject" : "Object");
    describe();
  }

  function hintAtTimes() {
    const { watermark, watermark_iso: iso } = graphNow(graph);
    if (iso) setText(timeHint, `next, or a time such as ${iso.slice(0, 16)}`);
    else setText(timeHint, `next, or a tick${Number.isInteger(watermark) ? ` such as ${watermark + 1}` : ""}`);
  }

  /** The question as it stands; what was doubtful before may be so no longer. */
  function describe() {
    const given = h("b", {}, name(entity.input.value.trim() || "…"));
    const does = h("em", { class: "relation" }, name(relation.input.value.trim() || "…"));
    const asked = h("b", { class: "unknown" }, "?");
    const [subject, object] = direction === "subject" ? [given, asked] : [asked, given];
    fill(preview, triple(subject, does, object, h("span", { class: "when" }, time.value.trim() || "next")));
    doubts.replaceChildren();
  }

  async function ask(event) {
    event.preventDefault();
    send.disabled = true;
    setText(send, "Asking …");
    try {
      const doubt = await doubtful(entity.input.value.trim(), relation.input.value.trim());
      fill(doubts, doubt);
      if (!doubt) fill(answer, answerCard(graph, await post(ofGraph(graph, "ask"), body(), null, signal)));
    } catch (error) {
      if (!isLeft(error)) fill(answer, problem(error.message));
    } finally {
      send.disabled = false;
      setText(send, "Ask");
    }
  }

  /** What speaks against sending the question as it is, or null. */
  async function doubtful(given, does) {
    const [who, what] = await Promise.all([
      lookUp(graph, "entity", given, signal),
      lookUp(graph, "relation", does, signal),
    ]);
    const correct = (field) => (text) => {
      field.input.value = text;
      describe();
      form.requestSubmit();
    };
    if (!what.known) return unknownRelation(does, what.names, correct(relation));
    if (who.known || newcomer === given || !who.names.length) return null;
    return unknownEntity(given, who.names, correct(entity), () => {
      newcomer = given;
      form.requestSubmit();
    });
  }

  function body() {
    const at = time.value.trim();
    return {
      [direction]: entity.input.value.trim(),
      relation: relation.input.value.trim(),
      time: /^-?\d+$/.test(at) ? Number(at) : at || "next",
      k: Number(size.value),
    };
  }
}
