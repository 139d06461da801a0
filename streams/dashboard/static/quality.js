// The cards about quality: how the model and the heuristic did on one kind of questions.

import { lineChart } from "./charts.js";
import { h, setText } from "./dom.js";
import { downloads } from "./download.js";
import * as format from "./format.js";
import { swaps } from "./store.js";

export const MEASURES = [
  ["mrr", "MRR"],
  ["hits@10", "Hits@10"],
];
const FEW = 30; // answers below which a mean jumps too much to set the axis

/** The card of one slice; `show(history, measure)` writes the samples into it. */
export function quality(graph, slice, title, signal) {
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
  const chart = lineChart(host, { label: title, lines, hover: ".3f", height: 200 }, signal);
  return {
    element: h(
      "article",
      { class: "card tile slice" },
      h("div", { class: "tile-head" }, h("h3", {}, kind), downloads(chart, kind, graph)),
      note,
      h("div", { class: "figures" }, h("p", { class: "figure" }, mine, " ", unit), lead),
      host,
    ),
    show(history, measure) {
      const samples = history.filter((sample) => sample.graphs?.[graph]);
      const of = (sample, key) => sample.graphs[graph][key]?.[slice] ?? null;
      const column = (key) => samples.map((sample) => of(sample, key));
      const last = samples.at(-1);
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
      if (!last) return;
      const dates = samples.map(({ graphs }) => format.when(graphs[graph].watermark, graphs[graph].watermark_iso));
      chart.update({
        kind: "clock",
        x: samples.map((sample) => sample.t),
        y: [measure, `heuristic_${measure}`].map(column),
        trusted: column("count").map((count) => count >= FEW),
        notes: dates,
        columns: [
          { name: "answers", values: column("count") },
          { name: "stream date", values: dates },
          { name: "version", values: samples.map((sample) => sample.graphs[graph].version) },
        ],
        marks: swaps(graph).map((swap) => ({ x: swap.t, text: format.version(swap.version) })),
        summary: `${name} of the model ${format.score(model)}, of the heuristic ${format.score(heuristic)}`,
      });
    },
  };
}
