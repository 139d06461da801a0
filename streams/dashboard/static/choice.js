// One of a few, as a row of buttons: radio buttons in truth, so that arrow keys and readers know them.

import { h } from "./dom.js";

/** A group of `options` [[value, title]] of which `chosen` is set; `change(value)` is told of another one. */
export function choice({ legend, name, options, chosen, change, showLegend = false }) {
  return h(
    "fieldset",
    { class: "choice" },
    h("legend", { class: showLegend ? null : "hidden" }, legend),
    options.map(([value, title]) =>
      h(
        "label",
        {},
        h("input", { type: "radio", name, value, checked: value === chosen, on: { change: () => change(value) } }),
        h("span", {}, title),
      ),
    ),
  );
}
