// What is wrong now, above every page: nothing is shown while nothing is.

import { fill, h } from "./dom.js";
import { known, news } from "./store.js";

const SHOWN = 5;
const MEANS = {
  "bad-artifact": "cannot be loaded, its events wait in the log",
  unreachable: "cannot be reached, its events wait in the log",
  failed: "failed, its events wait in the log",
  "records-lost": "has lost events",
  "snapshot-failed": "cannot be saved, it answers all the same",
  "log-remade": "is another one",
};

/** Keep a list of the incidents in this element for as long as the page is open. */
export function incidents(place) {
  const show = () => {
    place.hidden = known.incidents.length === 0;
    fill(
      place,
      known.incidents.slice(0, SHOWN).map((one) =>
        h(
          "div",
          { class: "incident" },
          h(
            "p",
            {},
            h("b", {}, `${one.graph ? `Graph ${one.graph}` : "The log"} ${MEANS[one.kind] ?? one.kind}`),
            ` since ${clock(one.since)}${one.next_try ? `, next try at ${clock(one.next_try)}` : ""}`,
          ),
          h("p", { class: "reason" }, one.detail),
        ),
      ),
      known.incidents.length > SHOWN
        ? h("p", { class: "incident" }, `And ${known.incidents.length - SHOWN} more: see /health.`)
        : [],
    );
  };
  news.addEventListener("overview", show);
  news.addEventListener("incidents", show);
}

function clock(iso) {
  return new Date(iso).toLocaleTimeString();
}
