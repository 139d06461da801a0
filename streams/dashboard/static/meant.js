// Before a question is sent: whether its names are known, and which known ones were perhaps meant.

import { get, isLeft, ofGraph } from "./api.js";
import { h, name } from "./dom.js";

/** Whether a graph knows this name, and those nearest to it. Where nobody can say, the stream will. */
export async function lookUp(graph, kind, text, signal) {
  try {
    return await get(ofGraph(graph, "nearest"), { kind, q: text }, signal);
  } catch (error) {
    if (isLeft(error)) throw error;
    return { known: true, names: [] };
  }
}

/** A relation must be one of the graph's: say so, and offer the nearest. */
export function unknownRelation(text, names, take) {
  return doubt(
    [h("b", {}, name(text)), " is no relation of this graph, so it cannot be asked."],
    names.length ? offers(names, take) : h("p", {}, "Empty the field and press the arrow down to see all of them."),
  );
}

/** An entity may be new, but a typing error may be new as well. */
export function unknownEntity(text, names, take, insist) {
  return doubt(
    [h("b", {}, name(text)), " has never been seen in this graph."],
    offers(names, take),
    h("button", { type: "button", class: "quiet small", on: { click: insist } }, "Ask as a newcomer"),
  );
}

function doubt(sentence, ...rest) {
  return h("div", { class: "doubt", role: "alert" }, h("p", {}, sentence), rest);
}

function offers(names, take) {
  return h(
    "div",
    {},
    h("p", { class: "hint" }, "Did you mean"),
    h(
      "ul",
      { class: "chips" },
      names.map((one) =>
        h("li", {}, h("button", { type: "button", class: "chip", on: { click: () => take(one) } }, name(one))),
      ),
    ),
  );
}
