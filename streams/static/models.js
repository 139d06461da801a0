// The bundles of a graph: which one answers, how the others were judged, and how to change that.

import { get, isLeft, ofGraph } from "./api.js";
import { emptyState, fill, h, name, problem, refill } from "./dom.js";
import * as format from "./format.js";
import { known, news } from "./store.js";
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
      const state = JSON.stringify([models, known.worker?.changes]);
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
    const heads = ["Version", "Status", "Made", "MRR", "Present then", "Why", ...(changes ? ["Change"] : [])];
    refill(
      table,
      models.length
        ? h(
            "table",
            { class: "card stacking" },
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                heads.map((head) => h("th", { scope: "col" }, head)),
              ),
            ),
            h(
              "tbody",
              {},
              models.map((model) =>
                h(
                  "tr",
                  { class: model.version === present ? "present" : null, data: { version: model.version } },
                  cell("Version", h("code", { class: "version" }, model.version)),
                  cell(
                    "Status",
                    h(
                      "span",
                      { class: "badge", data: { status: model.version === present ? "present" : model.status } },
                      model.status,
                    ),
                  ),
                  cell("Made", model.created ? format.moment(model.created) : format.NONE),
                  cell("MRR", format.score(model.mrr), "numeric"),
                  cell("Present then", format.score(model.present_mrr), "numeric"),
                  cell("Why", model.reason ?? format.NONE, "reason"),
                  changes
                    ? cell(
                        "Change",
                        model.version === present
                          ? h("span", { class: "hint" }, "answers now")
                          : h(
                              "button",
                              {
                                type: "button",
                                class: "small",
                                "aria-label": `Promote ${model.version}`,
                                on: {
                                  click: () => alter(`Promote ${model.version}`, "promote", { version: model.version }),
                                },
                              },
                              "Promote",
                            ),
                      )
                    : null,
                ),
              ),
            ),
          )
        : emptyState(
            "This graph has no bundle yet.",
            "Facts wait in the log until one is there. To train the first:",
            "adatkg train --from-log GRAPH --models models",
          ),
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

function cell(head, content, kind = null) {
  return h("td", { "data-head": head, class: kind }, content);
}
