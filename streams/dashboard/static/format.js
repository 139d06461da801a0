// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const percent = new Intl.NumberFormat("en", { style: "percent", maximumSignificantDigits: 2 });

export const NONE = "–";
const VERSION = 14; // characters of a short version

const given = (value) => value !== null && value !== undefined && Number.isFinite(value);

export const count = (value) => (given(value) ? whole.format(value) : NONE);
export const rate = (value) =>
  given(value) ? (value >= 10_000 ? compact : value >= 100 ? whole : short).format(value) : NONE;
export const score = (value) => (given(value) ? value.toFixed(3) : NONE);
export const share = (value) => (given(value) ? (value > 0 && value < 0.001 ? "<0.1%" : percent.format(value)) : NONE);
export const decimal = (value) => (given(value) ? short.format(value) : NONE);

/** Seconds as milliseconds below one, so that latencies read well. */
export function seconds(value) {
  if (!given(value)) return NONE;
  return value < 1 ? `${short.format(value * 1000)} ms` : `${short.format(value)} s`;
}

export function bytes(value) {
  if (!given(value)) return NONE;
  const units = ["B", "KB", "MB", "GB", "TB"];
  let step = 0;
  while (value >= 1000 && step < units.length - 1) {
    value /= 1000;
    step += 1;
  }
  return `${short.format(value)} ${units[step]}`;
}

/** A time of the stream: its place in the calendar, or the bare tick where the graph has none. */
export function when(t, iso) {
  if (iso) return iso.replace("T", " ").replace(/(:\d\d):00(\+00:00)?$/, "$1");
  return t === null || t === undefined ? NONE : `tick ${t}`;
}

/** A moment as a log would write it. */
export function moment(iso) {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? iso : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

/** A rank; one that is not known lies beyond the list that is remembered. */
export function rank(value) {
  if (value === null || value === undefined) return "beyond the list";
  return `rank ${Number.isInteger(value) ? value : value.toFixed(1)}`;
}

/** "1 fact", "3 facts". */
export function plural(value, noun, nouns = `${noun}s`) {
  return `${count(value)} ${value === 1 ? noun : nouns}`;
}

/** The end of a version, which tells it from the others, where there is room for a few letters; whole parts if it can. */
export function version(text) {
  if (text.length <= VERSION) return text;
  const end = text.slice(1 - VERSION);
  return `…${end.slice(end.indexOf("-") + 1) || end}`;
}
