// The frame around the pages: header, choice of graph, connection, and which page is open.

import * as ask from "./ask.js";
import { fill, h, setText } from "./dom.js";
import * as entity from "./entity.js";
import * as format from "./format.js";
import { incidents } from "./incidents.js";
import * as letters from "./letters.js";
import * as models from "./models.js";
import * as overview from "./overview.js";
import { follow, parse } from "./router.js";
import { search } from "./search.js";
import { connect, graphNow, known, news } from "./store.js";

const CHOICE = "adatkg-graph";
const PAGES = {
  "": { title: "Overview", page: overview, path: () => "#/" },
  ask: { title: "Ask", page: ask, path: (graph) => `#/ask/${encodeURIComponent(graph)}`, ofGraph: true },
  models: { title: "Models", page: models, path: (graph) => `#/models/${encodeURIComponent(graph)}`, ofGraph: true },
  deadletters: { title: "Dead letters", page: letters, path: () => "#/deadletters" },
  entity: { title: "Entity", page: entity, ofGraph: true },
};
const at = (id) => document.getElementById(id);
let go = null;
let chosen = remembered();
let shownFor; // the graph that the open page was made for; undefined before the worker has said anything

function remembered() {
  try {
    return localStorage.getItem(CHOICE);
  } catch {
    return null;
  }
}

/** The graph that is looked at: that of the address, else the chosen one, else the first. */
function present() {
  const { graph } = parse(location.hash);
  if (graph !== null) return graph;
  if (chosen !== null && known.graphs.has(chosen)) return chosen;
  return known.graphs.keys().next().value ?? null;
}

function choose(graph) {
  chosen = graph;
  try {
    localStorage.setItem(CHOICE, graph);
  } catch {
    /* it lasts as long as the page */
  }
}

function open(route, signal, first) {
  const wanted = PAGES[route.page] ?? PAGES[""];
  const graph = present();
  if (route.graph !== null) choose(route.graph);
  shownFor = graph === null && known.worker === null ? undefined : graph;
  const main = at("main");
  document.title = [route.entity ?? wanted.title, ...(graph ? [graph] : []), "AdaTKG Streams"].join(" · ");
  if (graph === null && known.worker === null) {
    fill(main, h("p", { class: "hint", role: "status" }, "Waiting for the worker …"));
  } else {
    const page = wanted.ofGraph && graph === null ? overview : wanted.page;
    page.open(main, { ...route, graph }, signal);
  }
  if (!first) {
    window.scrollTo(0, 0);
    main.querySelector("h1")?.focus({ preventScroll: true });
  }
  head();
  foot();
}

/** What the header says, written only where it changed. */
function head() {
  const graph = present();
  const { page } = parse(location.hash);
  const nav = at("pages");
  const links = Object.entries(PAGES).filter(([, one]) => one.path && (graph !== null || !one.ofGraph));
  if (nav.children.length !== links.length)
    fill(
      nav,
      links.map(([, one]) => h("a", {}, one.title)),
    );
  links.forEach(([key, one], i) => {
    const link = nav.children[i];
    setText(link, one.title);
    link.setAttribute("href", one.path(graph));
    if (key === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  const names = [...new Set([...known.graphs.keys(), ...(graph === null ? [] : [graph])])].sort();
  const picker = at("graph");
  if (names.join("\n") !== [...picker.options].map((option) => option.value).join("\n")) {
    fill(
      picker,
      names.map((one) => h("option", { value: one }, one)),
    );
  }
  picker.disabled = names.length === 0;
  if (graph !== null) picker.value = graph;
  const now = graph === null ? {} : graphNow(graph);
  setText(at("version"), now.version ?? "none yet");
  at("version").title = now.version ?? "";
  setText(at("watermark"), format.when(now.watermark, now.watermark_iso));
  at("watermark").title = now.watermark_iso ? `tick ${now.watermark}` : "";
}

function foot() {
  const { worker } = known;
  if (!worker) return;
  const graph = known.graphs.get(present());
  const replica = worker.replicas > 1 ? `, replica ${worker.replica} of ${worker.replicas}` : "";
  const since = format.moment(new Date(worker.started * 1000).toISOString());
  const parts = [
    `Worker group ${worker.group}${replica}, ${worker.ready ? `running since ${since}` : "waiting for its partitions"}`,
    graph
      ? `${format.plural(graph.entities, "entity", "entities")}, ${format.plural(graph.relations, "relation")}, ` +
        `${format.bytes(graph.state_bytes)} of state`
      : null,
  ];
  fill(
    at("foot"),
    parts.filter(Boolean).map((part) => h("span", {}, part)),
    h("span", {}, h("a", { href: "/metrics" }, "metrics"), " · ", h("a", { href: "/scores" }, "scores")),
  );
}

at("find").append(search(present));
incidents(at("incidents"));
at("graph").addEventListener("change", (event) => {
  const graph = event.target.value;
  const { page } = parse(location.hash);
  choose(graph);
  const path = PAGES[page]?.path?.(graph) ?? "#/";
  if (location.hash === path || (path === "#/" && !location.hash)) go();
  else location.hash = path;
});
at("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the page
  at("main").focus();
});
news.addEventListener("connection", ({ detail }) => {
  setText(at("connection"), detail);
  at("connection").dataset.state = detail;
});
news.addEventListener("overview", () => {
  if (present() !== shownFor) go();
  head();
  foot();
});
news.addEventListener("sample", head);

go = follow(open);
connect();
