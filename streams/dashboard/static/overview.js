// The first page: how fast, how good, and what is being foretold.

import { choice } from "./choice.js";
import { emptyState, fill, h } from "./dom.js";
import { feed } from "./feed.js";
import { MEASURES, quality } from "./quality.js";
import { speedTiles } from "./speed.js";
import { SLICES, known, news } from "./store.js";

const RANGES = [
  [1, "1 min"],
  [5, "5 min"],
  [10, "10 min"], // all that is kept
];
const view = { minutes: 10, measure: "mrr" }; // lasts as long as the page

export function open(main, { graph }, signal) {
  if (!graph) {
    fill(main, h("h1", { tabindex: "-1" }, "Overview"), noGraph());
    return;
  }
  const speed = speedTiles(graph, signal);
  const slices = SLICES.map(([slice, title]) => quality(graph, slice, title, signal));
  const set = (key) => (value) => {
    view[key] = value;
    show();
  };
  fill(
    main,
    h("h1", { class: "hidden", tabindex: "-1" }, "Overview"),
    h(
      "div",
      { class: "overview" },
      h(
        "div",
        { class: "charts" },
        h(
          "section",
          { class: "speed", "aria-labelledby": "speed-title" },
          h(
            "div",
            { class: "section-head" },
            h("h2", { id: "speed-title" }, "How fast is the stream?"),
            choice({
              legend: "Time that the charts show",
              name: "minutes",
              options: RANGES,
              chosen: view.minutes,
              change: set("minutes"),
            }),
          ),
          h(
            "div",
            { class: "tiles" },
            speed.map((card) => card.element),
          ),
        ),
        h(
          "section",
          { class: "quality", "aria-labelledby": "quality-title" },
          h(
            "div",
            { class: "section-head" },
            h(
              "div",
              {},
              h("h2", { id: "quality-title" }, "How good are the answers?"),
              h(
                "p",
                { class: "hint" },
                "Each answer is scored when the truth arrives in the stream: the last 1,000 of each kind.",
              ),
            ),
            choice({
              legend: "Measure",
              name: "measure",
              options: MEASURES,
              chosen: view.measure,
              change: set("measure"),
            }),
          ),
          h(
            "p",
            { class: "legend" },
            h("span", { class: "key model" }, "model"),
            h("span", { class: "key heuristic" }, "recurrency heuristic: what happened most recently happens again"),
            h("span", { class: "key mark" }, "another version took over"),
          ),
          h(
            "div",
            { class: "tiles" },
            slices.map((card) => card.element),
          ),
        ),
      ),
      feed(graph, signal),
    ),
  );

  function show() {
    const since = (known.history.at(-1)?.t ?? 0) - view.minutes * 60;
    // The worker keeps ten minutes; whatever it still has of a little more belongs to them.
    const history = view.minutes === RANGES.at(-1)[0] ? known.history : known.history.filter(({ t }) => t >= since);
    for (const card of speed) card.show(history);
    for (const card of slices) card.show(history, view.measure);
  }
  news.addEventListener("sample", show, { signal });
  news.addEventListener("overview", show, { signal });
  show();
}

/** What to do while no graph has sent anything. */
function noGraph() {
  return emptyState(
    "No graph has sent an event to this worker yet.",
    "A graph appears with its first event. To play some months of world news into the stream:",
    "adatkg replay icews14 --to 2014-09-12",
  );
}
