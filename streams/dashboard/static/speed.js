// The tiles about speed: throughput, lag, latency.

import { lineChart } from "./charts.js";
import { fill, h, setText } from "./dom.js";
import { downloads } from "./download.js";
import * as format from "./format.js";

const SMOOTH = 10; // seconds in a mean

/** The three tiles; each has an `element`, and `show(history)` writes the samples into it. */
export function speedTiles(graph, signal) {
  return [THROUGHPUT, LAG, LATENCY].map((about) => tile(graph, about, signal));
}

const THROUGHPUT = {
  title: "Throughput",
  hint: "mean of the last ten seconds",
  lines: [
    { name: "events/s", color: "--model", fill: "--model-soft" },
    { name: "predictions/s", color: "--second" },
  ],
  // A stream may come in gusts, and a number that jumps cannot be read.
  prepare: (history) => smooth(history, ["events_per_s", "predictions_per_s"]),
  read: (sample) => [sample.events_per_s, sample.predictions_per_s],
  main: (sample) => [format.rate(sample.events_per_s), "events/s"],
  side: (sample) => [["predictions/s", format.rate(sample.predictions_per_s), "second"]],
};

const LAG = {
  title: "Lag",
  hint: "events that wait in the log",
  lines: [{ name: "events", color: "--model", fill: "--model-soft" }],
  read: (sample) => [sample.lag],
  main: (sample) => [format.rate(sample.lag), "events"],
  side: (sample) => [["dead letters/s", format.rate(sample.dead_letters_per_s), ""]],
  floor: 10,
};

const LATENCY = {
  title: "Latency",
  hint: "from a query's arrival to its answer",
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
};

/** Samples with the means of the last few seconds instead of the values at these keys. */
function smooth(history, keys) {
  return history.map(({ t }, i) => {
    const recent = history.slice(Math.max(0, i + 1 - SMOOTH), i + 1);
    const mean = (key) => recent.reduce((sum, sample) => sum + sample[key], 0) / recent.length;
    return { t, ...Object.fromEntries(keys.map((key) => [key, mean(key)])) };
  });
}

function tile(graph, about, signal) {
  const { title, hint, lines, floor, suffix, read, main, side } = about;
  const { prepare = (history) => history, latest = (samples) => samples.at(-1) } = about;
  const number = h("span", { class: "number" }, format.NONE);
  const unit = h("span", { class: "unit" });
  const beside = h("dl", { class: "beside" });
  const host = h("div", { class: "chart" });
  const chart = lineChart(host, { label: `${title}, ${hint}`, lines, floor, suffix, height: 130 }, signal);
  return {
    element: h(
      "article",
      { class: "card tile" },
      h("div", { class: "tile-head" }, h("h3", {}, title), downloads(chart, title, graph)),
      h("p", { class: "hint" }, hint),
      h("div", { class: "figures" }, h("p", { class: "figure" }, number, " ", unit), beside),
      host,
    ),
    show(history) {
      const samples = prepare(history);
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
        kind: "clock",
        x: samples.map((one) => one.t),
        y: lines.map((_, i) => rows.map((row) => row[i] ?? null)),
        summary: [`${value} ${what}`, ...sides.map(([name, text]) => `${text} ${name}`)].join(", "),
      });
    },
  };
}
