// Line charts by Plotly, which is fetched when the first one is wanted. They are drawn in turn, when something is new
// and when they can be seen, with a rest in between, so that the page stays at hand on a slow machine.

import { HEIGHT, figure, palette } from "./figure.js";

let library = null;
const charts = new Set(); // those drawn longest ago first
const REST = 3; // times as long as drawing took until the next one is drawn,
const LONGEST_REST = 300; // but no more milliseconds than this: the first drawings take long
const seen = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) touch(target, (chart) => (chart.visible = isIntersecting));
    plan();
  },
  { rootMargin: "200px" },
);
const sized = new ResizeObserver((entries) => {
  for (const { target } of entries) touch(target, (chart) => (chart.dirty = true));
  plan();
});
let planned = false;

window.addEventListener("themechange", () => {
  for (const chart of charts) chart.dirty = true;
  plan();
});
document.addEventListener("visibilitychange", plan);

/**
 * A chart in `host` until `signal` ends. `spec`: label, lines [{name, color, dash, fill, mode}], hover, suffix, floor,
 * height. The colours are names of custom properties.
 */
export function lineChart(host, spec, signal) {
  const chart = { host, spec, data: null, dirty: false, visible: false };
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", spec.label);
  host.dataset.state = "waiting";
  host.style.height = `${spec.height ?? HEIGHT}px`;
  charts.add(chart);
  seen.observe(host);
  sized.observe(host);
  signal.addEventListener("abort", () => {
    charts.delete(chart);
    seen.unobserve(host);
    sized.unobserve(host);
    window.Plotly?.purge(host);
  });
  return {
    spec,
    /**
     * `x` of all lines on the axis `kind` ("clock": unix seconds, "calendar" or "day": ISO, "linear"), `y` per line,
     * `trusted` per point, `notes` per point, `columns` [{name, values}] that only a table shows, `xTitle`,
     * `marks` [{x, text}], and `summary` for those who do not see the lines.
     */
    update(data) {
      chart.data = data;
      chart.dirty = true;
      plan();
    },
    /** What the chart shows now, or null. */
    shown: () => chart.data,
    /** A picture of it as a data URL, or null where nothing could be drawn. */
    async picture() {
      const plotly = chart.data ? await load() : null;
      if (!plotly) return null;
      draw(plotly, chart);
      const layout = { ...host.layout, paper_bgcolor: palette(host)("--surface") };
      const size = { width: host.clientWidth, height: spec.height ?? HEIGHT, scale: 2 };
      return plotly.toImage({ data: host.data, layout }, { format: "png", ...size });
    },
  };
}

function touch(host, change) {
  const chart = [...charts].find((one) => one.host === host);
  if (chart) change(chart);
}

function plan() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(async () => {
    const chart = [...charts].find((one) => one.dirty && one.visible && one.data && one.host.clientWidth);
    const wanted = chart && !document.hidden;
    const plotly = wanted ? await load() : null;
    if (wanted && !plotly) for (const { host } of charts) host.dataset.state = "failed";
    if (!plotly || !charts.has(chart)) {
      planned = false;
      return;
    }
    const begun = performance.now();
    draw(plotly, chart);
    chart.dirty = false;
    charts.delete(chart);
    charts.add(chart);
    setTimeout(
      () => {
        planned = false;
        plan();
      },
      Math.min(REST * (performance.now() - begun), LONGEST_REST),
    );
  });
}

function load() {
  library ??= new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = "/static/plotly.min.js";
    script.onload = () => resolve(window.Plotly);
    // Without it the page still has all its numbers.
    script.onerror = () => resolve(null);
    document.head.append(script);
  });
  return library;
}

function draw(plotly, { host, spec, data }) {
  const { traces, layout } = figure(host, spec, data);
  plotly.react(host, traces, layout, { displayModeBar: false, responsive: false, showTips: false });
  host.dataset.state = "drawn";
  if (data.summary) host.setAttribute("aria-label", `${spec.label}: ${data.summary}`);
}
