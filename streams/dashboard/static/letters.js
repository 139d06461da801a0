// What could not be processed, why, and a way to try it again.

import { get, isLeft } from "./api.js";
import { emptyState, fill, h, name, problem, refill } from "./dom.js";
import * as format from "./format.js";
import { known, news } from "./store.js";
import { change, howToAllow } from "./token.js";

const LIMIT = 50;
const PAUSE = 2_000; // milliseconds between two looks, however many letters come

export function open(main, _, signal) {
  const outcome = h("div", { "aria-live": "polite" });
  const allow = h("div", {});
  const list = h("div", {});
  fill(
    main,
    h(
      "div",
      { class: "page-head" },
      h(
        "div",
        {},
        h("h1", { tabindex: "-1" }, "Dead letters"),
        h(
          "p",
          { class: "hint" },
          `Messages that could not be processed, the newest ${LIMIT} first. ` +
            "The stream goes on without them; once the cause is mended they can be put back.",
        ),
      ),
    ),
    allow,
    outcome,
    list,
  );
  let shown = "";
  let planned = null;

  async function look() {
    planned = null;
    try {
      const { letters } = await get("/api/deadletters", { limit: LIMIT }, signal);
      const state = JSON.stringify([letters, known.worker?.changes]);
      if (state !== shown) show(letters);
      shown = state;
    } catch (error) {
      if (!isLeft(error)) {
        shown = "";
        fill(list, problem(error.message));
      }
    }
  }

  function show(letters) {
    const changes = known.worker?.changes ?? false;
    fill(allow, known.worker && !changes && letters.length ? howToAllow() : null);
    refill(
      list,
      letters.length
        ? h(
            "ol",
            { class: "letters" },
            letters.map((letter) =>
              h(
                "li",
                { class: "card letter" },
                h(
                  "div",
                  { class: "letter-head" },
                  h("span", { class: "badge bad" }, letter.reason),
                  h(
                    "span",
                    { class: "hint" },
                    letter.graph ? [name(letter.graph), " · "] : null,
                    format.moment(letter.at_iso),
                    ` · ${letter.partition}-${letter.offset}`,
                  ),
                  changes
                    ? h(
                        "button",
                        {
                          type: "button",
                          class: "small",
                          "aria-label": `Try ${letter.partition}-${letter.offset} again`,
                          on: { click: () => retry(letter) },
                        },
                        "Try again",
                      )
                    : null,
                ),
                h("p", {}, letter.detail),
                h("pre", { tabindex: "0", "aria-label": "The message" }, letter.text || "(empty)"),
              ),
            ),
          )
        : emptyState("No dead letters.", "Every message so far could be processed."),
    );
  }

  async function retry({ partition, offset }) {
    outcome.replaceChildren();
    try {
      const answer = await change("Try again", "/api/deadletters/retry", { partition, offset });
      if (answer)
        fill(
          outcome,
          h(
            "p",
            { class: "done" },
            "The message was put back at the end of the log. Should it fail again, it comes back here.",
          ),
        );
    } catch (error) {
      fill(outcome, problem(error.message));
    }
    look();
  }

  const soon = () => {
    planned ??= setTimeout(look, PAUSE);
  };
  news.addEventListener("deadletter", soon, { signal });
  news.addEventListener("overview", soon, { signal });
  signal.addEventListener("abort", () => clearTimeout(planned));
  look();
}
