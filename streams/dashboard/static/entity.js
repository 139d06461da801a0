// What is known of one entity, and how its memory took over from its name while it was met again and again.

import { get, isLeft, ofGraph } from "./api.js";
import { askRoute, emptyState, entityLink, fill, h, name, problem, refill, setText, time } from "./dom.js";
import * as format from "./format.js";
import { news } from "./store.js";
import { traceSection } from "./trace.js";

const PAUSE = 2_000; // milliseconds between two looks

export function open(main, { graph, entity }, signal) {
  const figures = h("dl", { class: "card numbers" });
  const sentence = h("p", { class: "sentence" });
  const trouble = h("div", {});
  const facts = h("div", {});
  const cluster = h("div", {});
  const history = traceSection(graph, entity, signal);
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
        h("a", { class: "button", href: askRoute(graph, { subject: entity }) }, "Ask with it as subject"),
        h("a", { class: "button quiet", href: askRoute(graph, { object: entity }) }, "Ask with it as object"),
      ),
    ),
    trouble,
    figures,
    h(
      "div",
      { class: "entity-page" },
      history.element,
      h(
        "div",
        { class: "beside-trace" },
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
    history.show(about.trace);
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
                time(fact.t, fact.t_iso),
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
