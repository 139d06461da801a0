// How an entity's memory took over from its name while it was met again and again.

import { lineChart } from "./charts.js";
import { emptyState, h } from "./dom.js";
import { downloads } from "./download.js";
import * as format from "./format.js";

const SMOOTH = 10; // answers in a running mean

/** The section with the charts; `show(trace)` writes an entity's points into it. */
export function traceSection(graph, entity, signal) {
  const untraced = h(
    "div",
    {},
    emptyState("No trace yet.", "It begins with the next question about this entity, and lives as long as the worker."),
  );
  const gateHost = h("div", { class: "chart" });
  const normHost = h("div", { class: "chart" });
  const gates = lineChart(
    gateHost,
    {
      label: "Gate and reciprocal rank over the number of interactions",
      floor: 1,
      hover: ".3f",
      height: 240,
      lines: [
        { name: "gate", color: "--model", fill: "--model-soft" },
        { name: "reciprocal rank of one answer", color: "--heuristic", mode: "markers" },
        { name: `mean of the last ${SMOOTH}`, color: "--heuristic", dash: "dash" },
      ],
    },
    signal,
  );
  const norms = lineChart(
    normHost,
    {
      label: "Length of the memory vector over time",
      hover: ".3f",
      height: 150,
      lines: [{ name: "memory norm", color: "--second" }],
    },
    signal,
  );
  const file = `${graph}-${entity}`;
  const traced = h(
    "div",
    { hidden: true },
    h(
      "p",
      { class: "legend" },
      h("span", { class: "key model" }, "gate"),
      h("span", { class: "key heuristic" }, "reciprocal rank of the truth (dots) and its running mean"),
      h("span", { class: "key mark" }, "another version took over"),
    ),
    gateHost,
    h(
      "div",
      { class: "tile-head" },
      h("h3", {}, "Length of the memory vector"),
      downloads(norms, "Memory norm", file),
    ),
    normHost,
  );
  return {
    element: h(
      "section",
      { class: "card", "aria-labelledby": "trace-title" },
      h(
        "div",
        { class: "tile-head" },
        h("h2", { id: "trace-title" }, "From name to memory"),
        downloads(gates, "Gate", file),
      ),
      h(
        "p",
        { class: "hint" },
        "The gate says how much of the memory goes into the entity's vector beside its name; it is 0 for a newcomer.",
      ),
      untraced,
      traced,
    ),
    show(trace) {
      traced.hidden = trace.length === 0;
      untraced.hidden = !traced.hidden;
      if (traced.hidden) return;
      const ranks = trace.map((point) => point.reciprocal_rank ?? null);
      const times = trace.map((point) => point.t_iso ?? point.t);
      const last = trace.at(-1);
      const column = (name, key) => ({ name, values: trace.map((point) => point[key]) });
      const columns = [column("version", "model"), { name: "time", values: times }];
      gates.update({
        kind: "linear",
        x: trace.map((point) => point.interactions),
        xTitle: "interactions so far",
        y: [trace.map((point) => point.gate), ranks, runningMean(ranks)],
        notes: trace.map((point) => format.when(point.t, point.t_iso)),
        marks: changes(trace).map((point) => ({ x: point.interactions, text: format.version(point.model) })),
        columns,
        summary: `the gate is ${format.score(last.gate)} after ${format.plural(last.interactions, "interaction")}`,
      });
      norms.update({
        ...axisOf(trace),
        x: times,
        y: [trace.map((point) => point.memory_norm)],
        marks: changes(trace).map((point) => ({ x: point.t_iso ?? point.t, text: format.version(point.model) })),
        columns: columns.slice(0, 1),
        summary: `now ${format.decimal(last.memory_norm)}`,
      });
    },
  };
}

/** The calendar where the graph has one, else bare ticks. */
function axisOf(trace) {
  if (trace.some((point) => !point.t_iso)) return { kind: "linear", xTitle: "tick" };
  return { kind: trace.every((point) => point.t_iso.length <= 10) ? "day" : "calendar" };
}

/** The first points that another version answered. */
function changes(trace) {
  return trace.filter((point, i) => i > 0 && point.model !== trace[i - 1].model);
}

/** The mean of the last few that are known; null before the first. */
function runningMean(values) {
  const recent = [];
  return values.map((value) => {
    if (value !== null) recent.push(value);
    if (recent.length > SMOOTH) recent.shift();
    return recent.length ? recent.reduce((sum, one) => sum + one, 0) / recent.length : null;
  });
}
