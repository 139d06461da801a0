// What a chart shows, to take along: its numbers as CSV, its picture as PNG.

import { h } from "./dom.js";

const KEPT = 10_000; // milliseconds that a browser has to begin with a download

/** Two small buttons for a chart; `file` is the beginning of the files' names. */
export function downloads(chart, title, file) {
  const button = (kind, make) =>
    h(
      "button",
      { type: "button", class: "take", "aria-label": `Download ${title} as ${kind}`, on: { click: make } },
      kind,
    );
  return h(
    "span",
    { class: "takes" },
    button("CSV", () => {
      const data = chart.shown();
      if (!data) return;
      const address = URL.createObjectURL(new Blob([table(chart.spec, data)], { type: "text/csv" }));
      save(address, `${named(file, title)}.csv`);
      setTimeout(() => URL.revokeObjectURL(address), KEPT);
    }),
    button("PNG", async () => {
      const picture = await chart.picture();
      if (picture) save(picture, `${named(file, title)}.png`);
    }),
  );
}

/** One row per point, with the times as ISO and what the chart itself has no room for. */
export function table({ lines }, { kind, x, y, xTitle, columns = [] }) {
  const first = kind === "clock" ? x.map((unix) => new Date(unix * 1000).toISOString()) : x;
  const all = [
    { name: kind === "linear" ? (xTitle ?? "x") : "time", values: first },
    ...lines.map((line, i) => ({ name: line.name, values: y[i] })),
    ...columns,
  ];
  const rows = [all.map(({ name }) => name), ...x.map((_, i) => all.map(({ values }) => values[i]))];
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** A text in quotes where it needs them; one that a spreadsheet would run as a formula is kept a text. */
function cell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+@\t\r-]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function named(...parts) {
  return parts
    .join("-")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-|-$/g, "");
}

function save(address, file) {
  h("a", { href: address, download: file }).click();
}
