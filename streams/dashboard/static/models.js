// The bundles of a graph: which one answers, how the others were judged, and how to change that.

import { get, isLeft, ofGraph } from "./api.js";
import { emptyState, fill, h, name, problem, refill } from "./dom.js";
import * as format from "./format.js";
import { graphNow, known, news } from "./store.js";
import { change, howToAllow } from "./token.js";

const AGAIN = 5_000; // milliseconds between two looks at the store, which is told of by nobody

export function open(main, { graph }, signal) {
  const outcome = h("div", { "aria-live": "polite" });
  const table = h("div", {});
  const back = h(
    "button",
    { type: "button", class: "quiet", hidden: true, on: { click: () => alter("Roll back", "rollback", {}) } },
    "Roll back to the one before",
  );
  const allow = h("div", {});
  fill(
    main,
    h(
      "div",
      { class: "page-head" },
      h(
        "div",
        {},
        h("h1", { tabindex: "-1" }, "Models of ", name(graph)),
        h(
          "p",
          { class: "hint" },
          "A new bundle answers only if it did better than the present one on the newest part of the log. " +
            "The worker lets it catch up and swaps between two events.",
        ),
      ),
      h("p", { class: "actions" }, back),
    ),
    allow,
    outcome,
    table,
  );
  let shown = "";

  async function look() {
    try {
      const models = await get(ofGraph(graph, "models"), {}, signal);
      const state = JSON.stringify([models, known.worker?.changes, graphNow(graph).version]);
      if (state !== shown) show(models);
      shown = state;
    } catch (error) {
      if (!isLeft(error)) {
        shown = "";
        fill(table, problem(error.message));
      }
    }
  }

  function show({ present, models }) {
    const changes = known.worker?.changes ?? false;
    fill(allow, known.worker && !changes ? howToAllow() : null);
    back.hidden = !changes || models.length < 2;
    const heads = ["Version", "Status", "Made", "MRR", "Present then", "Why", ...(changes ? ["Change"] : [])].map(
      (head) => h("th", { scope: "col" }, head),
    );
    const rows = models.map((model) => row(model, present, changes));
    const empty = () =>
      emptyState(
        "This graph has no bundle yet.",
        "Facts wait in the log until one is there. To train the first:",
        "adatkg retrain GRAPH --models models",
      );
    refill(
      table,
      rows.length
        ? h("table", { class: "card stacking" }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows))
        : empty(),
    );
  }

  function row(model, present, changes) {
    const status = model.version === present ? "present" : model.status;
    const cells = [
      ["Version", h("code", { class: "version" }, model.version)],
      ["Status", h("span", { class: "badge", data: { status } }, status)],
      ["Made", h("span", { class: "moment" }, model.created ? format.moment(model.created) : format.NONE)],
      ["MRR", h("span", { class: "numeric", title: model.measured_on }, format.score(model.mrr))],
      ["Present then", h("span", { class: "numeric" }, format.score(model.present_mrr))],
      ["Why", h("span", { class: "reason" }, model.reason ?? format.NONE)],
      ...(changes ? [["Change", changing(model, present)]] : []),
    ];
    return h(
      "tr",
      { class: status === "present" ? "present" : null, data: { version: model.version } },
      cells.map(([head, content]) => h("td", { "data-head": head }, content)),
    );
  }

  function changing({ version, status }, present) {
    if (version === present)
      return h("span", { class: "hint" }, version === graphNow(graph).version ? "answers now" : "catching up …");
    // One that did worse than the present one answers only when somebody insists.
    const force = status === "refused";
    const promote = () => alter(`Promote ${version}`, "promote", { version, ...(force ? { force } : {}) });
    return h(
      "button",
      { type: "button", class: "small", "aria-label": `Promote ${version}`, on: { click: promote } },
      force ? "Promote anyway" : "Promote",
    );
  }

  async function alter(title, action, body) {
    outcome.replaceChildren();
    try {
      const answer = await change(title, ofGraph(graph, action), body);
      if (answer)
        fill(
          outcome,
          h(
            "p",
            { class: "done" },
            `${answer.version} is the present one in the store; the worker swaps as soon as it has caught up.`,
          ),
        );
    } catch (error) {
      fill(outcome, problem(error.message));
    }
    look();
  }

  news.addEventListener(
    "models",
    ({ detail }) => {
      if (detail.graph !== graph) return;
      fill(outcome, h("p", { class: "done" }, `${detail.version} answers now.`));
      look();
    },
    { signal },
  );
  news.addEventListener("overview", look, { signal });
  const timer = setInterval(() => {
    if (!document.hidden) look();
  }, AGAIN);
  signal.addEventListener("abort", () => clearInterval(timer));
  look();
}
