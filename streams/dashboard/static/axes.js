// Where the ticks of an axis stand, how far it reaches, and which labels beside marks have room. Nothing here draws.

const SECOND = 1000; // all dates here are milliseconds, read as if they were UTC
const DAY = 86_400 * SECOND;
const DATE_STEPS = [
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200].map((s) => s * SECOND),
  ...[1, 2, 7, 14, 28, 91, 182, 365, 730, 1826, 3652].map((days) => days * DAY),
];
const MOST = 6; // ticks of one axis
const BETWEEN = 12; // pixels between two labels
const ROWS = 2; // of labels above a chart
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const pen = document.createElement("canvas").getContext("2d");

/** A function that says how many pixels wide a text is. */
export function ruler(size, family) {
  return (text) => {
    pen.font = `${size}px ${family}`;
    return pen.measureText(text).width;
  };
}

/** Unix seconds as a date axis wants them: this machine's clock, read as if it were UTC. */
export function clockTime(unix) {
  return (unix - new Date(unix * 1000).getTimezoneOffset() * 60) * 1000;
}

/** A time of the graph's calendar as a date axis wants it. */
export function calendarTime(iso) {
  return Date.parse(/[zZ]|[+-]\d\d:\d\d$/.test(iso) || iso.length <= 10 ? iso : `${iso}Z`);
}

/** Ticks between two values, as many as fit side by side: {values, texts}. `spill`: how far they may stand out, left and right. */
export function ticks([low, high], { dates, width, spill, measure }) {
  for (let most = MOST; most > 0; most -= 1) {
    const step = stepOf(high - low, most, dates);
    const first = Math.ceil(low / step) * step;
    const values = [];
    for (let i = 0; first + i * step <= high && i <= MOST; i += 1) values.push(first + i * step);
    const all = values.map((value) => ({ value, text: dates ? dateText(value, step, high - low) : numberText(value) }));
    const widest = Math.max(0, ...all.map(({ text }) => measure(text)));
    const scale = width / (high - low || 1);
    if (step * scale < widest + BETWEEN && most > 1) continue;
    const inside = all.filter(({ value, text }) => {
      const middle = (value - low) * scale;
      const half = measure(text) / 2;
      return middle - half >= -spill[0] && middle + half <= width + spill[1];
    });
    return { values: inside.map(({ value }) => value), texts: inside.map(({ text }) => text) };
  }
  return { values: [], texts: [] };
}

/**
 * From zero to a little above the highest value, and to `floor` at least. Points that rest on too little to be trusted
 * do not stretch the axis, as long as there are others.
 */
export function reach(lines, trusted = null, floor = 0) {
  const highest = (counts) => {
    let top = 0;
    for (const line of lines) line.forEach((value, i) => counts(i) && value > top && (top = value));
    return top;
  };
  const top = Math.max(floor, (trusted && highest((i) => trusted[i])) || highest(() => true));
  return [0, top > 0 ? top * 1.1 : 1];
}

/**
 * Give each mark's label a place of its own above the chart, the newest first; one for which there is none is left
 * out, its line stays. `marks`: [{at, text}] with `at` in pixels. Returns [{text, middle, row}].
 */
export function placeLabels(marks, width, measure) {
  const rows = Array.from({ length: ROWS }, () => []);
  const placed = [];
  for (const { at, text } of [...marks].sort((a, b) => b.at - a.at)) {
    const half = measure(text) / 2 + 2;
    const middle = Math.min(Math.max(at, half), width - half);
    const isFree = (row) => row.every((one) => Math.abs(one.middle - middle) >= one.half + half + BETWEEN);
    const row = 2 * half > width ? -1 : rows.findIndex(isFree);
    if (row < 0) continue;
    rows[row].push({ middle, half });
    placed.push({ text, middle, row });
  }
  return placed;
}

function stepOf(span, most, dates) {
  const least = span / most || 1;
  if (dates) return DATE_STEPS.find((step) => step >= least) ?? DATE_STEPS.at(-1) * Math.ceil(least / DATE_STEPS.at(-1));
  const power = 10 ** Math.floor(Math.log10(least));
  return Math.max(1, [1, 2, 5, 10].find((digit) => digit * power >= least) * power);
}

function dateText(value, step, span) {
  const date = new Date(value);
  const two = (number) => String(number).padStart(2, "0");
  const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
  const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  if (step < 60 * SECOND) return `${time}:${two(date.getUTCSeconds())}`;
  if (step < DAY) return span > DAY ? `${day} ${time}` : time;
  return step < 91 * DAY ? day : `${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
}

function numberText(value) {
  return value.toLocaleString("en");
}
