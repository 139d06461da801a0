// What a chart shows, as Plotly wants it: lines, axes, marks. Nothing here draws.

import { calendarTime, clockTime, placeLabels, reach, ruler, ticks } from "./axes.js";

const LEFT = 44; // pixels for the labels of the vertical axis
const RIGHT = 14;
const SPILL = [3, RIGHT - 2]; // by which a tick's label may stand out: on the left there are those of the other axis
const ROW = 14; // pixels of a row of labels above a chart
const TICK = 11; // pixels of a tick's font
const LABEL = 10; // of a mark's
export const HEIGHT = 120;
// How the values of a horizontal axis become what Plotly takes, and how they are written where one points at them.
const AXES = {
  clock: { dates: true, read: clockTime, hover: "%H:%M:%S" },
  calendar: { dates: true, read: calendarTime, hover: "%-d %b %Y %H:%M" },
  day: { dates: true, read: calendarTime, hover: "%-d %b %Y" },
  linear: { dates: false, read: Number, hover: ",d" },
};

/** Traces and layout of a chart in `host`; see `lineChart` for `spec` and `data`. */
export function figure(host, spec, data) {
  const colour = palette(host);
  const { fontFamily: family } = getComputedStyle(host);
  const axis = AXES[data.kind];
  const x = data.x.map(axis.read);
  const ends = [Math.min(...x), Math.max(...x)];
  if (ends[0] === ends[1]) ends[1] += axis.dates ? 1000 : 1;
  const width = Math.max(host.clientWidth - LEFT - RIGHT, 1);
  const marks = (data.marks ?? [])
    .map((mark) => ({ x: axis.read(mark.x), text: mark.text }))
    .filter((mark) => mark.x >= ends[0] && mark.x <= ends[1])
    .map((mark) => ({ ...mark, at: ((mark.x - ends[0]) / (ends[1] - ends[0])) * width }));
  const labels = placeLabels(marks, width, ruler(LABEL, family));
  const rows = Math.max(0, ...labels.map((label) => label.row + 1));
  const below = ticks(ends, { dates: axis.dates, width, spill: SPILL, measure: ruler(TICK, family) });
  const text = colour("--muted");
  const both = {
    gridcolor: colour("--grid"),
    linecolor: colour("--grid"),
    zeroline: false,
    fixedrange: true,
    tickangle: 0,
    tickfont: { size: TICK, color: text },
  };
  const layout = {
    width: host.clientWidth,
    height: spec.height ?? HEIGHT,
    margin: { l: LEFT, r: RIGHT, t: 8 + rows * ROW, b: data.xTitle ? 38 : 24 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family, color: text },
    showlegend: false,
    dragmode: false,
    hovermode: "x unified",
    hoverlabel: {
      bgcolor: colour("--surface"),
      bordercolor: colour("--line"),
      font: { size: 12, color: colour("--text") },
    },
    xaxis: {
      ...both,
      type: axis.dates ? "date" : "linear",
      showgrid: false,
      range: ends,
      tickmode: "array",
      tickvals: below.values,
      ticktext: below.texts,
      hoverformat: axis.hover,
      title: data.xTitle ? { text: data.xTitle, font: { size: TICK }, standoff: 4 } : undefined,
    },
    yaxis: {
      ...both,
      nticks: 4,
      tickformat: spec.suffix ? "~s" : undefined,
      ticksuffix: spec.suffix ?? "",
      range: reach(data.y, data.trusted, spec.floor),
    },
    shapes: marks.map((mark) => markLine(mark.x, colour)),
    annotations: labels.map((label) => markLabel(label, width, colour)),
  };
  return { traces: spec.lines.map((line, i) => trace(line, i, x, spec, data, colour)), layout };
}

function trace(line, i, x, spec, data, colour) {
  const noted = i === 0 && data.notes;
  return {
    type: "scatter",
    mode: line.mode ?? "lines",
    name: line.name,
    x,
    y: data.y[i],
    customdata: noted ? data.notes.map(plain) : undefined,
    connectgaps: true,
    line: { color: colour(line.color), width: line.dash ? 1.75 : 2, dash: line.dash ?? "solid", shape: "linear" },
    marker: { color: colour(line.color), size: 5, opacity: 0.75 },
    fill: line.fill ? "tozeroy" : "none",
    fillcolor: line.fill ? colour(line.fill) : undefined,
    hovertemplate:
      `%{y:${spec.hover ?? ".3~s"}}${spec.suffix ?? ""}${noted ? " · %{customdata}" : ""}` +
      `<extra>${line.name}</extra>`,
  };
}

function markLine(x, colour) {
  const line = { color: colour("--mark"), width: 1, dash: "dot" };
  return { type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line };
}

function markLabel({ text, middle, row }, width, colour) {
  return {
    xref: "paper",
    x: middle / width,
    xanchor: "center",
    yref: "paper",
    y: 1,
    yanchor: "bottom",
    yshift: row * ROW,
    borderpad: 0,
    showarrow: false,
    text: plain(text),
    font: { size: LABEL, color: colour("--mark") },
  };
}

/** Custom properties as colours: the browser resolves them for the theme that holds here. */
export function palette(host) {
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
