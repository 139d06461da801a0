// Elements by a function. Text always goes in as text: a name is whatever a producer wrote.

import { when } from "./format.js";

/** An element with attributes (`on` is a map of listeners, `class` and `data` as usual) and children. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "data") {
      Object.assign(element.dataset, value);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  fill(element, ...children);
  return element;
}

/** Replace what is in an element. */
export function fill(element, ...children) {
  element.replaceChildren(
    ...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** Replace what is in an element; the focus goes on to whatever now stands for the same thing. */
export function refill(element, ...children) {
  const active = document.activeElement;
  const before = element.contains(active) ? sameAs(element, active) : null;
  const place = before?.indexOf(active) ?? 0;
  fill(element, ...children);
  if (before) {
    const after = sameAs(element, active);
    after[Math.min(place, after.length - 1)]?.focus({ preventScroll: true });
  }
  return element;
}

/** What in an element leads to the same place or does the same. */
function sameAs(element, one) {
  const mark = (other) => [other.tagName, other.getAttribute("href"), other.getAttribute("aria-label")].join("\n");
  return [...element.querySelectorAll(one.tagName)].filter((other) => mark(other) === mark(one));
}

/** Set a text only when it differs, so that readers and layout are left alone. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A name in its own direction of writing, whatever stands around it. */
export function name(text, attributes = {}) {
  return h("bdi", attributes, text);
}

/** A time of the stream as people read it; the tick behind it is at hand for those who want it. */
export function time(t, iso) {
  return h("time", { datetime: iso || null, title: iso && Number.isInteger(t) ? `tick ${t}` : null }, when(t, iso));
}

/** A link to an entity's page. */
export function entityLink(graph, entity) {
  return h("a", { class: "entity", href: entityRoute(graph, entity) }, name(entity));
}

/** The address of an entity's page. */
export function entityRoute(graph, entity) {
  return `#/entity/${encodeURIComponent(graph)}/${encodeURIComponent(entity)}`;
}

/** The address of the form, filled in as far as known: subject or object, relation. */
export function askRoute(graph, values = {}) {
  const query = new URLSearchParams(values).toString();
  return `#/ask/${encodeURIComponent(graph)}${query ? `?${query}` : ""}`;
}

/** What stands where nothing is yet: a sentence and, where there is one, the command that changes it. */
export function emptyState(title, text, command = null) {
  return h(
    "div",
    { class: "empty" },
    h("p", { class: "empty-title" }, title),
    h("p", {}, text),
    command ? h("code", { class: "command" }, command) : null,
  );
}

/** A problem in the server's own words. */
export function problem(text) {
  return h("p", { class: "problem", role: "alert" }, text);
}
