// What the page knows of the stream: fed by /api/overview and /api/stream, bounded, and told to whoever listens.

import { get } from "./api.js";

export const SLICES = [
  ["all", "All questions"],
  ["warm", "Warm: seen before"],
  ["cold_start", "Cold start: never seen before"],
];
const SAMPLES = 600; // seconds of history
const ROWS = 200; // predictions that a truth may still come for
const AGAIN = [1, 2, 5, 10]; // seconds between attempts to connect
const SILENCE = 15_000; // milliseconds without a sample after which the connection counts as lost
const STALE = 60_000; // milliseconds after which sizes are fetched again

/** Events: overview, sample, prediction, truth, ended, models, deadletter, incidents, connection; `detail` is what came. */
export const news = new EventTarget();
export const known = {
  worker: null,
  graphs: new Map(),
  incidents: [],
  history: [],
  rows: new Map(),
  connection: "connecting",
};

let source = null;
let attempts = 0;
let heard = 0;
let fetched = 0;
let retry = null;

/** Keep a connection for as long as the page is open. */
export function connect() {
  clearTimeout(retry);
  source?.close();
  heard = performance.now();
  source = new EventSource("/api/stream");
  source.onopen = () => {
    attempts = 0;
    heard = performance.now();
    refresh().then(
      () => say("live"),
      () => {},
    );
  };
  // A browser tries again by itself after a broken connection, but not after a refusal; so we always do it.
  source.onerror = reconnect;
  on("sample", takeSample);
  on("prediction", (row) => {
    known.rows.set(row.id, row);
    trim(known.rows, ROWS);
    tell("prediction", row);
  });
  on("truth", (truth) => {
    const row = known.rows.get(truth.id);
    if (row) row.truths = [...(row.truths ?? []).filter((one) => one.entity !== truth.entity), truth];
    tell("truth", truth);
  });
  on("ended", (end) => {
    const row = known.rows.get(end.id);
    if (row) Object.assign(row, { ended: true, within: end.within });
    tell("ended", end);
  });
  on("models", (change) => {
    refresh().catch(() => {});
    tell("models", change);
  });
  on("deadletter", (letter) => tell("deadletter", letter));
  on("incidents", ({ incidents }) => {
    known.incidents = incidents;
    tell("incidents", incidents);
  });
}

/** Fetch the overview; the history it brings replaces ours, so that a gap is filled. */
export async function refresh() {
  const overview = await get("/api/overview");
  fetched = performance.now();
  known.worker = overview.worker;
  known.graphs = new Map(overview.graphs.map((graph) => [graph.graph, graph]));
  known.incidents = overview.incidents;
  known.history = overview.history.slice(-SAMPLES);
  tell("overview", overview);
}

/** What the latest sample says of a graph, beside what the overview said. */
export function graphNow(graph) {
  const sample = known.history.at(-1)?.graphs?.[graph];
  return {
    ...known.graphs.get(graph),
    ...(sample ? { watermark: sample.watermark, watermark_iso: sample.watermark_iso, version: sample.version } : {}),
  };
}

/** Where another version began to answer: [{t, version}]. */
export function swaps(graph) {
  const found = [];
  let before = null;
  for (const sample of known.history) {
    const version = sample.graphs?.[graph]?.version ?? null;
    if (version !== null && before !== null && version !== before) found.push({ t: sample.t, version });
    before = version ?? before;
  }
  return found;
}

function takeSample(sample) {
  heard = performance.now();
  const last = known.history.at(-1);
  if (last && sample.t <= last.t) return;
  known.history.push(sample);
  if (known.history.length > SAMPLES) known.history.shift();
  const unheardOf = Object.keys(sample.graphs ?? {}).some((graph) => !known.graphs.has(graph));
  if (unheardOf || heard - fetched > STALE) refresh().catch(() => {});
  if (known.connection !== "live" && fetched) say("live");
  tell("sample", sample);
}

function reconnect() {
  source?.close();
  source = null;
  say("reconnecting");
  // Where there are too many connections already, the page is at least not empty.
  if (!fetched) refresh().catch(() => {});
  const pause = AGAIN[Math.min(attempts, AGAIN.length - 1)];
  attempts += 1;
  clearTimeout(retry);
  retry = setTimeout(connect, pause * 1000);
}

setInterval(() => {
  if (source && performance.now() - heard > SILENCE) reconnect();
}, 5_000);

function on(event, take) {
  source.addEventListener(event, (message) => take(JSON.parse(message.data)));
}

function trim(map, size) {
  while (map.size > size) map.delete(map.keys().next().value);
}

function say(connection) {
  if (known.connection === connection) return;
  known.connection = connection;
  tell("connection", connection);
}

function tell(kind, detail) {
  news.dispatchEvent(new CustomEvent(kind, { detail }));
}
