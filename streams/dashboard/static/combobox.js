// A text field that completes names, after the combobox pattern of WAI-ARIA: the focus stays in the field, arrows move
// through the list, Enter takes, Escape closes. What is typed need not be in the list.

import { fill, h, name } from "./dom.js";

const PAUSE = 120; // milliseconds after a key before names are looked up

/**
 * A labelled field; `find(text, signal)` resolves to names. `taken(name)` hears of one that was chosen from the list.
 * Returns {element, input}.
 */
export function combobox({ id, label, value = "", required = true, attributes = {}, find, taken = null, signal }) {
  const list = h("ul", { role: "listbox", id: `${id}-list`, "aria-label": "Names that fit", hidden: true });
  const said = h("span", { class: "hidden", role: "status" });
  const input = h("input", {
    id,
    type: "text",
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": `${id}-list`,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    required,
    value,
    ...attributes,
  });
  const element = h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    h("div", { class: "combobox" }, input, list),
    said,
  );
  let names = [];
  let active = -1;
  let timer = null;
  let asked = new AbortController();
  let waiting = false; // what was typed has not been looked up yet, so what the list shows is about to change
  let steps = 0; // arrows that were pressed meanwhile, taken in the list that comes

  function close() {
    clearTimeout(timer);
    timer = null;
    asked.abort();
    waiting = false;
    steps = 0;
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function show(found) {
    names = found;
    active = -1;
    input.removeAttribute("aria-activedescendant");
    fill(
      list,
      names.map((text, i) =>
        h(
          "li",
          {
            role: "option",
            id: `${id}-${i}`,
            "aria-selected": "false",
            // The field would lose its focus before a click arrives.
            on: { pointerdown: (event) => event.preventDefault(), click: () => take(i) },
          },
          name(text),
        ),
      ),
    );
    list.hidden = names.length === 0;
    input.setAttribute("aria-expanded", String(names.length > 0));
    said.textContent = names.length ? `${names.length} names` : "no such name";
  }

  function move(step) {
    if (!list.hidden && !waiting) {
      mark((active + step + names.length + (active < 0 && step < 0 ? 1 : 0)) % names.length);
      return;
    }
    steps += step;
    if (timer !== null || !waiting) look();
  }

  function mark(i) {
    list.children[active]?.setAttribute("aria-selected", "false");
    active = i;
    const option = list.children[i];
    if (!option) {
      input.removeAttribute("aria-activedescendant");
      return;
    }
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option.id);
  }

  function take(i) {
    input.value = names[i];
    close();
    input.dispatchEvent(new Event("change", { bubbles: true }));
    taken?.(names[i]);
  }

  function empty() {
    input.value = "";
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }

  async function look() {
    clearTimeout(timer);
    timer = null;
    waiting = true;
    asked.abort();
    asked = new AbortController();
    const mine = asked.signal;
    try {
      const found = await find(input.value.trim(), AbortSignal.any([mine, signal]));
      if (mine.aborted || document.activeElement !== input) return;
      const count = found.length;
      const first = steps > 0 ? steps - 1 : steps;
      const moved = steps !== 0 && count > 0;
      waiting = false;
      steps = 0;
      show(found);
      if (moved) mark(((first % count) + count) % count);
    } catch {
      // Completion is a help; without it the field is a field.
      if (!mine.aborted) close();
    }
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    waiting = true;
    steps = 0;
    timer = setTimeout(look, PAUSE);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const open = !list.hidden;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && steps) {
      event.preventDefault(); // what was chosen is not there yet
    } else if (event.key === "Enter" && open && active >= 0) {
      event.preventDefault();
      take(active);
    } else if (event.key === "Escape" && (open || input.value)) {
      event.preventDefault();
      if (open) close();
      else empty();
    }
  });
  return { element, input };
}
