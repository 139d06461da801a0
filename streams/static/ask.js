// A question of one's own: who or whom, by which relation, when.

import { get, isLeft, ofGraph, post } from "./api.js";
import { combobox } from "./combobox.js";
import { entityLink, fill, h, name, problem, setText } from "./dom.js";
import { bar, question } from "./feed.js";
import * as format from "./format.js";

const LARGEST = 50; // candidates that may be asked for

export function open(main, { graph, query }, signal) {
  let direction = query.has("object") ? "object" : "subject";
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
  const preview = h("p", { class: "preview" });
  const answer = h("div", { class: "answer", "aria-live": "polite" });
  const send = h("button", { type: "submit" }, "Ask");
  const form = h(
    "form",
    { class: "card ask", "aria-label": "Question", on: { submit: ask, input: describe, change: describe } },
    h(
      "fieldset",
      { class: "choice" },
      h("legend", {}, "What is asked for"),
      [
        ["subject", "Whom will they act on?"],
        ["object", "Who will act on them?"],
      ].map(([value, title]) =>
        h(
          "label",
          {},
          h("input", {
            type: "radio",
            name: "direction",
            value,
            checked: value === direction,
            on: { change: () => turn(value) },
          }),
          h("span", {}, title),
        ),
      ),
    ),
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
        h("p", { class: "hint", id: "ask-time-hint" }, "next, a date such as 2014-03-02, or a tick"),
      ),
      h("div", { class: "field" }, h("label", { for: "ask-k" }, "Candidates"), size),
    ),
    preview,
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
  invite();

  function turn(value) {
    direction = value;
    setText(entity.element.querySelector("label"), direction === "subject" ? "Subject" : "Object");
    describe();
  }

  function describe() {
    const given = entity.input.value.trim() || "…";
    const does = h("em", { class: "relation" }, name(relation.input.value.trim() || "…"));
    const until = time.value.trim();
    const at = !until || until === "next" ? " next?" : /^\d+$/.test(until) ? ` at time ${until}?` : ` on ${until}?`;
    fill(
      preview,
      direction === "subject"
        ? ["Whom will ", h("b", {}, name(given)), " ", does, at]
        : ["Who will ", does, " ", h("b", {}, name(given)), at],
    );
  }

  function invite() {
    fill(
      answer,
      h(
        "div",
        { class: "empty" },
        h("p", { class: "empty-title" }, "The answer appears here."),
        h("p", {}, "Type a few letters of a name: the arrow keys choose, Enter takes."),
      ),
    );
  }

  async function ask(event) {
    event.preventDefault();
    send.disabled = true;
    setText(send, "Asking …");
    const until = time.value.trim();
    const body = {
      [direction]: entity.input.value.trim(),
      relation: relation.input.value.trim(),
      time: /^-?\d+$/.test(until) ? Number(until) : until || "next",
      k: Number(size.value),
    };
    try {
      show(await post(ofGraph(graph, "ask"), body, null, signal));
    } catch (error) {
      if (!isLeft(error)) fill(answer, problem(error.message));
    } finally {
      send.disabled = false;
      setText(send, "Ask");
    }
  }

  function show(prediction) {
    const { query: asked } = prediction;
    const row = {
      s: asked.s ?? null,
      r: asked.r,
      o: asked.o ?? null,
      t: asked.t,
      t_iso: typeof asked.t === "string" && asked.t !== "next" ? asked.t : null,
    };
    fill(
      answer,
      h(
        "section",
        { class: "card", "aria-labelledby": "answer-title" },
        h("h2", { id: "answer-title", class: "question" }, asked.t === "next" ? wording(row) : question(graph, row)),
        h("p", {}, explain(row.s ?? row.o, prediction)),
        h(
          "table",
          { class: "ranking" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["Rank", "Entity", "Probability"].map((head) => h("th", { scope: "col" }, head)),
            ),
          ),
          h(
            "tbody",
            {},
            prediction.top.map((one, i) =>
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
            ),
          ),
        ),
        h(
          "p",
          { class: "hint" },
          "Answered by ",
          h("code", {}, prediction.model),
          prediction.late ? ". The time had passed when it was asked, so it is answered as of the stream's date." : ".",
        ),
      ),
    );
  }

  function wording(row) {
    const does = h("em", { class: "relation" }, name(row.r));
    return row.o === null
      ? ["Whom will ", entityLink(graph, row.s), " ", does, " next?"]
      : ["Who will ", does, " ", entityLink(graph, row.o), " next?"];
  }
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
