// The search in the header: an entity's page from every page. The key "/" leads there.

import { get, ofGraph } from "./api.js";
import { combobox } from "./combobox.js";
import { entityRoute } from "./dom.js";

const KEY = "/";
const TYPING = "input, select, textarea, [contenteditable]";

/** The field; `graph()` says which graph is looked at. */
export function search(graph) {
  const find = async (text, signal) =>
    text && graph() !== null ? (await get(ofGraph(graph(), "names"), { q: text, limit: 8 }, signal)).names : [];
  const go = (name) => {
    field.input.value = "";
    field.input.blur();
    location.hash = entityRoute(graph(), name);
  };
  const field = combobox({
    id: "search",
    label: "Find an entity",
    required: false,
    attributes: { placeholder: "Find an entity", "aria-keyshortcuts": KEY, title: `Key: ${KEY}` },
    find,
    taken: go,
    signal: new AbortController().signal, // it stays as long as the page
  });
  field.element.classList.add("search");
  field.element.querySelector("label").classList.add("hidden");
  field.input.addEventListener("keydown", async (event) => {
    const text = field.input.value.trim();
    if (event.key !== "Enter" || event.defaultPrevented || !text || graph() === null) return;
    event.preventDefault();
    const names = await find(text).catch(() => []);
    // A name that nobody knows has a page as well: that of a newcomer.
    go(names.includes(text) ? text : (names[0] ?? text));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== KEY || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.(TYPING) || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    field.input.focus();
  });
  return field.element;
}
