// What is known of one entity, and how its memory took over from its name while it was met again and again.

import { get, isLeft, ofGraph } from "./api.js";
import { lineChart } from "./charts.js";
import { askRoute, emptyState, entityLink, fill, h, name, problem, refill, setText } from "./dom.js";
import * as format from "./format.js";
import { news } from "./store.js";

const PAUSE = 2_000; // milliseconds between two looks
const SMOOTH = 10; // answers in a running mean

export function open(main, { graph, entity }, signal) {
  const figures = h("dl", { class: "card numbers" });
  const sentence = h("p", { class: "sentence" });
  const trouble = h("div", {});
  const facts = h("div", {});
  const cluster = h("div", {});
  const untraced = h(
    "div",
    {},
    emptyState("No trace yet.", "It begins with the next event about this entity, and lives as long as the worker."),
  );
  const gateHost = h("div", { class: "chart" });
  const normHost = h("div", { class: "chart" });
  const traced = h(
    "div",
    { hidden: true },
    h(
      "p",
      { class: "legend" },
      h("span", { class: "key model" }, "gate"),
      h("span", { class: "key heuristic" }, "reciprocal rank of the truth (dots) and its running mean"),
    ),
    gateHost,
    h("h3", {}, "Length of the memory vector"),
    normHost,
  );
  const gates = lineChart(
    gateHost,
    {
      label: "Gate and reciprocal rank over the number of interactions",
      x: "linear",
      xTitle: "interactions so far",
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
      x: "date",
      hover: ".3f",
      height: 150,
      lines: [{ name: "memory norm", color: "--second" }],
    },
    signal,
  );
  fill(
    main,
    h(
      "div",
      { class: "page-head" },
      h(
        "div",
        {},
        h("p", { class: "kicker" }, "Entity in ", name(graph)),
        h("h1", { tabindex: "-1" }, name(entity)),
        sentence,
      ),
      h(
        "p",
        { class: "actions" },
        h("a", { class: "button", href: askRoute(graph, { subject: entity }) }, "Ask what they will do"),
        h("a", { class: "button quiet", href: askRoute(graph, { object: entity }) }, "Ask who will act on them"),
      ),
    ),
    trouble,
    figures,
    h(
      "div",
      { class: "entity-page" },
      h(
        "section",
        { class: "card", "aria-labelledby": "trace-title" },
        h("h2", { id: "trace-title" }, "From name to memory"),
        h(
          "p",
          { class: "hint" },
          "The gate says how much of the memory goes into the entity's vector beside its name; it is 0 for a newcomer.",
        ),
        untraced,
        traced,
      ),
      h(
        "section",
        { class: "card", "aria-labelledby": "facts-title" },
        h("h2", { id: "facts-title" }, "Latest facts"),
        facts,
      ),
      h(
        "section",
        { class: "card", "aria-labelledby": "cluster-title" },
        h("h2", { id: "cluster-title" }, "Entities of its kind"),
        cluster,
      ),
    ),
  );

  let busy = false;
  let looked = -Infinity;
  let shown = "";

  async function look() {
    if (busy || document.hidden || performance.now() - looked < PAUSE) return;
    busy = true;
    try {
      const about = await get(ofGraph(graph, "entity"), { name: entity }, signal);
      trouble.replaceChildren();
      // Links keep their focus while nothing has changed.
      const news = JSON.stringify(about);
      if (news !== shown) show(about);
      shown = news;
    } catch (error) {
      if (!isLeft(error)) fill(trouble, problem(error.message));
    } finally {
      busy = false;
      looked = performance.now();
    }
  }

  function show(about) {
    setText(
      sentence,
      about.known
        ? `Seen in ${format.plural(about.interactions, "fact")}. ` +
            `Its memory makes up ${format.share(about.gate)} of the blend with its name.`
        : "Never seen in this graph so far: questions about it are answered from its name alone.",
    );
    numbers(figures, [
      ["Interactions", format.count(about.interactions)],
      ["Memory updates", format.count(about.updates)],
      ["Gate", format.score(about.gate)],
      ["Memory norm", format.decimal(about.memory_norm)],
      ["Cluster", about.cluster === null ? format.NONE : `#${about.cluster}`],
    ]);
    showTrace(about.trace);
    refill(
      facts,
      about.facts.length
        ? h(
            "ol",
            { class: "fact-list" },
            about.facts.map((fact) =>
              h(
                "li",
                {},
                h("time", {}, format.when(fact.t, fact.t_iso)),
                h("span", {}, mention(fact.s), " ", h("em", { class: "relation" }, name(fact.r)), " ", mention(fact.o)),
              ),
            ),
          )
        : emptyState("No facts yet.", "They appear as soon as the stream brings one that names this entity."),
    );
    refill(
      cluster,
      h(
        "p",
        { class: "hint" },
        about.cluster === null
          ? "This model has no clusters."
          : `Its name falls into cluster #${about.cluster} with ${format.plural(about.cluster_size, "member")}; ` +
              `newcomers lean on what was learned from such kin.`,
      ),
      about.cluster_members?.length
        ? h(
            "ul",
            { class: "chips" },
            about.cluster_members.map((member) => h("li", {}, entityLink(graph, member))),
          )
        : null,
    );
  }

  function mention(other) {
    return other === entity ? h("b", {}, name(other)) : entityLink(graph, other);
  }

  function showTrace(trace) {
    traced.hidden = trace.length === 0;
    untraced.hidden = !traced.hidden;
    if (traced.hidden) return;
    const ranks = trace.map((point) => point.reciprocal_rank ?? null);
    const last = trace.at(-1);
    gates.update({
      x: trace.map((point) => point.interactions),
      y: [trace.map((point) => point.gate), ranks, runningMean(ranks)],
      summary: `the gate is ${format.score(last.gate)} after ${format.plural(last.interactions, "interaction")}`,
    });
    norms.update({
      x: trace.map((point) => point.t_iso ?? point.t),
      y: [trace.map((point) => point.memory_norm)],
      summary: `now ${format.decimal(last.memory_norm)}`,
    });
  }

  news.addEventListener("sample", look, { signal });
  news.addEventListener("connection", look, { signal });
  look();
}

/** Terms and numbers side by side, with only what changed being written again. */
function numbers(list, rows) {
  if (list.children.length !== rows.length) {
    fill(
      list,
      rows.map(([term]) => h("div", {}, h("dt", {}, term), h("dd", {}))),
    );
  }
  rows.forEach(([, text], i) => setText(list.children[i].lastChild, text));
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
