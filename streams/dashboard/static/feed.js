// The latest predictions as questions that a newcomer can read, held still while somebody reads them.

import { get, isLeft, ofGraph } from "./api.js";
import { predictionCard, settle } from "./card.js";
import { askRoute, emptyState, h, setText } from "./dom.js";
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
    const shown = rows.get(row.id);
    if (shown) {
      shown.row = row;
      settle(graph, shown.element, row);
      return;
    }
    const element = predictionCard(graph, row);
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
  news.addEventListener(
    "ended",
    ({ detail: { graph: of, id, within } }) => {
      const shown = rows.get(id);
      if (!shown || of !== graph) return;
      shown.row = { ...(known.rows.get(id) ?? shown.row), ended: true, within };
      settle(graph, shown.element, shown.row);
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

/** A graph's name as one word of a shell. */
function shell(text) {
  return /^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
