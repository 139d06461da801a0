// Line charts by Plotly, which is fetched when the first one is wanted. They are drawn in turn, when something is new
// and when they can be seen, with a rest in between, so that the page stays at hand on a slow machine.

let library = null;
const charts = new Set(); // those drawn longest ago first
const REST = 3; // times as long as drawing took until the next one is drawn,
const LONGEST_REST = 300; // but no more milliseconds than this: the first drawings take long
const seen = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      const chart = [...charts].find((one) => one.host === entry.target);
      if (chart) chart.visible = entry.isIntersecting;
    }
    plan();
  },
  { rootMargin: "200px" },
);
// How a date is written where ticks are less than a minute apart, a day, a month, or more; always in one line.
const CALENDAR = [
  { dtickrange: [null, 59_999], value: "%H:%M:%S" },
  { dtickrange: [60_000, 86_399_999], value: "%H:%M" },
  { dtickrange: [86_400_000, "M1"], value: "%-d %b" },
  { dtickrange: ["M1", null], value: "%b %Y" },
];
let planned = false;

window.addEventListener("themechange", () => {
  for (const chart of charts) chart.dirty = true;
  plan();
});
document.addEventListener("visibilitychange", plan);

/**
 * A chart in `host` until `signal` ends. `spec`: label, lines [{name, color, dash, fill, mode}], x ("date" or
 * "linear"), xTitle, hover, suffix, floor, height. The colours are names of custom properties.
 */
export function lineChart(host, spec, signal) {
  const chart = { host, spec, data: null, dirty: false, visible: false };
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", spec.label);
  host.style.height = `${spec.height ?? 120}px`;
  charts.add(chart);
  seen.observe(host);
  signal.addEventListener("abort", () => {
    charts.delete(chart);
    seen.unobserve(host);
    window.Plotly?.purge(host);
  });
  return {
    /** `x` of all lines, `y` per line, `marks` [{x, text}], `summary` for those who do not see the lines. */
    update(data) {
      chart.data = data;
      chart.dirty = true;
      plan();
    },
  };
}

/** Unix seconds as a date axis wants it: local, without a zone. */
export function localTime(unix) {
  const offset = new Date(unix * 1000).getTimezoneOffset() * 60;
  return new Date((unix - offset) * 1000).toISOString().slice(0, -1);
}

function plan() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(async () => {
    const chart = [...charts].find((one) => one.dirty && one.visible && one.data);
    const plotly = chart && !document.hidden ? await load() : null;
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
  const colour = palette(host);
  const traces = spec.lines.map((line, i) => ({
    type: "scatter",
    mode: line.mode ?? "lines",
    name: line.name,
    x: data.x,
    y: data.y[i],
    connectgaps: true,
    line: { color: colour(line.color), width: line.dash ? 1.75 : 2, dash: line.dash ?? "solid", shape: "linear" },
    marker: { color: colour(line.color), size: 5, opacity: 0.75 },
    fill: line.fill ? "tozeroy" : "none",
    fillcolor: line.fill ? colour(line.fill) : undefined,
    hovertemplate: `%{y:${spec.hover ?? ".3~s"}}${spec.suffix ?? ""}<extra>${line.name}</extra>`,
  }));
  const text = colour("--muted");
  const axis = {
    gridcolor: colour("--grid"),
    linecolor: colour("--grid"),
    zeroline: false,
    fixedrange: true,
    tickfont: { size: 11, color: text },
  };
  const layout = {
    height: spec.height ?? 120,
    margin: { l: 44, r: 10, t: data.marks?.length ? 18 : 8, b: spec.xTitle ? 38 : 24 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(host).fontFamily, color: text },
    showlegend: false,
    dragmode: false,
    hovermode: "x unified",
    hoverlabel: {
      bgcolor: colour("--surface"),
      bordercolor: colour("--line"),
      font: { size: 12, color: colour("--text") },
    },
    xaxis: {
      ...axis,
      type: spec.x ?? "date",
      showgrid: false,
      nticks: 5,
      tickformatstops: spec.x === "linear" ? undefined : CALENDAR,
      title: spec.xTitle ? { text: spec.xTitle, font: { size: 11 }, standoff: 4 } : undefined,
    },
    yaxis: {
      ...axis,
      rangemode: "tozero",
      nticks: 4,
      tickformat: spec.suffix ? "~s" : undefined,
      ticksuffix: spec.suffix ?? "",
      range: range(data.y, spec.floor),
    },
    shapes: (data.marks ?? []).map((mark) => ({
      type: "line",
      x0: mark.x,
      x1: mark.x,
      yref: "paper",
      y0: 0,
      y1: 1,
      line: { color: colour("--mark"), width: 1, dash: "dot" },
    })),
    annotations: (data.marks ?? []).map((mark) => ({
      x: mark.x,
      yref: "paper",
      y: 1,
      yanchor: "bottom",
      showarrow: false,
      text: plain(mark.text),
      font: { size: 10, color: colour("--mark") },
    })),
  };
  plotly.react(host, traces, layout, { displayModeBar: false, responsive: true, showTips: false });
  if (data.summary) host.setAttribute("aria-label", `${spec.label}: ${data.summary}`);
}

/** From zero to a little above the highest value, and to `floor` at least. */
function range(lines, floor = 0) {
  let top = floor;
  for (const line of lines) for (const value of line) if (value > top) top = value;
  return [0, top > 0 ? top * 1.1 : 1];
}

/** Custom properties as colours: the browser resolves them for the theme that holds here. */
function palette(host) {
  const probe = document.createElement("span");
  host.parentElement.append(probe);
  const found = new Map();
  const colour = (property) => {
    if (!found.has(property)) {
      probe.style.color = `var(${property})`;
      found.set(property, getComputedStyle(probe).color);
    }
    return found.get(property);
  };
  queueMicrotask(() => probe.remove());
  return colour;
}

/** Plotly reads some tags in texts; a version is only ever a text. */
function plain(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
