// The first page: how fast, how good, and what is being foretold.

import { lineChart, localTime } from "./charts.js";
import { emptyState, fill, h, setText } from "./dom.js";
import { feed } from "./feed.js";
import * as format from "./format.js";
import { SLICES, known, news, swaps } from "./store.js";

const MEASURES = [
  ["mrr", "MRR"],
  ["hits@10", "Hits@10"],
];
const SMOOTH = 10; // seconds in a mean
const LABEL = 14; // characters of a version beside its line
let measure = "mrr";

export function open(main, { graph }, signal) {
  if (!graph) {
    fill(main, h("h1", { tabindex: "-1" }, "Overview"), noGraph());
    return;
  }
  const speed = [throughput(signal), lag(signal), latency(signal)];
  const slices = SLICES.map(([slice, title]) => quality(graph, slice, title, signal));
  const latest = feed(graph, signal);
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
          { class: "speed", "aria-label": "Speed" },
          speed.map((card) => card.element),
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
                "Each answer is marked when the truth arrives in the stream: the last 1,000 of each kind.",
              ),
            ),
            choice(() => show()),
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
            { class: "slices" },
            slices.map((card) => card.element),
          ),
        ),
      ),
      latest,
    ),
  );

  function show() {
    for (const card of [...speed, ...slices]) card.show();
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

function choice(changed) {
  return h(
    "fieldset",
    { class: "choice" },
    h("legend", { class: "hidden" }, "Measure"),
    MEASURES.map(([key, title]) =>
      h(
        "label",
        {},
        h("input", {
          type: "radio",
          name: "measure",
          value: key,
          checked: key === measure,
          on: {
            change: () => {
              measure = key;
              changed();
            },
          },
        }),
        h("span", {}, title),
      ),
    ),
  );
}

// -- speed --------------------------------------------------------------------------------------------------------

function throughput(signal) {
  return tile("Throughput", "mean of the last ten seconds", signal, {
    lines: [
      { name: "events/s", color: "--model", fill: "--model-soft" },
      { name: "predictions/s", color: "--second" },
    ],
    // A stream may come in gusts, and a number that jumps cannot be read.
    history: () => smooth(known.history, ["events_per_s", "predictions_per_s"]),
    read: (sample) => [sample.events_per_s, sample.predictions_per_s],
    main: (sample) => [format.rate(sample.events_per_s), "events/s"],
    side: (sample) => [["predictions/s", format.rate(sample.predictions_per_s), "second"]],
  });
}

/** Samples with the means of the last few seconds instead of the values at these keys. */
function smooth(history, keys) {
  return history.map(({ t }, i) => {
    const recent = history.slice(Math.max(0, i + 1 - SMOOTH), i + 1);
    const mean = (key) => recent.reduce((sum, sample) => sum + sample[key], 0) / recent.length;
    return { t, ...Object.fromEntries(keys.map((key) => [key, mean(key)])) };
  });
}

function lag(signal) {
  return tile("Lag", "events that wait in the log", signal, {
    lines: [{ name: "events", color: "--model", fill: "--model-soft" }],
    read: (sample) => [sample.lag],
    main: (sample) => [format.rate(sample.lag), "events"],
    side: (sample) => [["dead letters/s", format.rate(sample.dead_letters_per_s), ""]],
    floor: 10,
  });
}

function latency(signal) {
  return tile("Latency", "from a query's arrival to its answer", signal, {
    lines: [
      { name: "95 % below", color: "--model", fill: "--model-soft" },
      { name: "half below", color: "--second" },
    ],
    read: (sample) => [sample.latency_p95, sample.latency_p50],
    // The last second that had an answer: a pause is no change of speed.
    latest: (samples) => samples.findLast((sample) => sample.latency_p95 !== null && sample.latency_p95 !== undefined),
    main: (sample) => [format.seconds(sample.latency_p95), "p95"],
    side: (sample) => [["p50", format.seconds(sample.latency_p50), "second"]],
    suffix: "s",
  });
}

function tile(
  title,
  hint,
  signal,
  { lines, history = () => known.history, read, main, side, latest = (samples) => samples.at(-1), floor, suffix },
) {
  const number = h("span", { class: "number" }, format.NONE);
  const unit = h("span", { class: "unit" });
  const beside = h("dl", { class: "beside" });
  const host = h("div", { class: "chart" });
  const chart = lineChart(host, { label: `${title}, ${hint}`, lines, floor, suffix, height: 130 }, signal);
  return {
    element: h(
      "article",
      { class: "card tile" },
      h("h2", {}, title),
      h("p", { class: "hint" }, hint),
      h("div", { class: "figures" }, h("p", { class: "figure" }, number, " ", unit), beside),
      host,
    ),
    show() {
      const samples = history();
      const sample = latest(samples);
      if (!sample) return;
      const [value, what] = main(sample);
      setText(number, value);
      setText(unit, what);
      const sides = side(sample);
      if (beside.children.length !== sides.length) {
        fill(
          beside,
          sides.map(([name, , kind]) => h("div", { class: kind || null }, h("dt", {}, name), h("dd", {}))),
        );
      }
      sides.forEach(([, text], i) => setText(beside.children[i].lastChild, text));
      const rows = samples.map(read);
      chart.update({
        x: samples.map((one) => localTime(one.t)),
        y: lines.map((_, i) => rows.map((row) => row[i] ?? null)),
        summary: [`${value} ${what}`, ...sides.map(([name, text]) => `${text} ${name}`)].join(", "),
      });
    },
  };
}

// -- quality ------------------------------------------------------------------------------------------------------

function quality(graph, slice, title, signal) {
  const mine = h("span", { class: "number" }, format.NONE);
  const unit = h("span", { class: "unit" });
  const lead = h("span", { class: "lead" });
  const [kind, meaning] = title.split(": ");
  const note = h("p", { class: "hint" });
  const host = h("div", { class: "chart" });
  const lines = [
    { name: "model", color: "--model" },
    { name: "heuristic", color: "--heuristic", dash: "dash" },
  ];
  const chart = lineChart(host, { label: title, lines, hover: ".3f", height: 230 }, signal);
  return {
    element: h(
      "article",
      { class: "card slice" },
      h("h3", {}, kind),
      note,
      h("div", { class: "figures" }, h("p", { class: "figure" }, mine, " ", unit), lead),
      host,
    ),
    show() {
      const of = (sample, key) => sample.graphs?.[graph]?.[key]?.[slice] ?? null;
      const history = known.history.filter((sample) => sample.graphs?.[graph]);
      const last = history.at(-1);
      const model = last ? of(last, measure) : null;
      const heuristic = last ? of(last, `heuristic_${measure}`) : null;
      const answers = last ? (of(last, "count") ?? 0) : 0;
      const name = MEASURES.find(([key]) => key === measure)[1];
      setText(mine, format.score(model));
      setText(unit, name);
      setText(lead, heuristic === null ? "" : `heuristic ${format.score(heuristic)}`);
      lead.dataset.side = model !== null && heuristic !== null && model >= heuristic ? "ahead" : "behind";
      const about = [meaning, answers ? `${format.plural(answers, "answer")}` : "no truth has come yet"];
      setText(note, about.filter(Boolean).join(" · "));
      chart.update({
        x: history.map((sample) => localTime(sample.t)),
        y: [measure, `heuristic_${measure}`].map((key) => history.map((sample) => of(sample, key))),
        marks: swaps(graph).map((swap) => ({ x: localTime(swap.t), text: shorten(swap.version) })),
        summary: `${name} of the model ${format.score(model)}, of the heuristic ${format.score(heuristic)}`,
      });
    },
  };
}

function shorten(version) {
  return version.length > LABEL ? `…${version.slice(1 - LABEL)}` : version;
}
