// What is wrong with how the page is laid out, by measuring it: a list of sentences, empty where all is well.
() => {
  const SLACK = 1.5; // pixels that rounding may cost
  const BAND = 56; // pixels that may be empty above a block
  const found = [];
  const seen = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !element.closest(".hidden, .skip");
  const box = (element) => element.getBoundingClientRect();
  const all = (selector) => [...document.querySelectorAll(selector)].filter(seen);
  const say = (what, element) => {
    const kind = element.getAttribute("class") || element.id || element.tagName.toLowerCase();
    found.push(`${what}: ${kind} "${element.textContent.trim().replace(/\s+/g, " ").slice(0, 40)}"`);
  };
  const meet = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > SLACK &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > SLACK;
  const pairs = (elements, tell) =>
    elements.forEach((one, i) =>
      elements.slice(i + 1).forEach((other) => {
        if (!one.contains(other) && !other.contains(one) && meet(box(one), box(other))) tell(one, other);
      }),
    );
  // What lies in a box that scrolls is seen through it.
  const scrolled = (element) => {
    const around = element.closest(".predictions, .fact-list, pre, [role=listbox]");
    return around !== null && ["auto", "scroll"].includes(getComputedStyle(around).overflowY);
  };

  // 1. Nothing stands out sideways.
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.push(`the page is wider than the window (${width})`);
  for (const element of all("header *, main *, footer *")) {
    if (element.closest("svg, .chart")) continue;
    const { left, right } = box(element);
    if (right > width + SLACK || left < -SLACK) say("beyond the window", element);
  }

  // 2. Nothing covers its neighbours.
  pairs(
    all(".card, .section-head, .page-head, .legend, .notice, .empty").filter((element) => !scrolled(element)),
    (one) => say("covered by another block", one),
  );
  pairs(all(".top > *, .state > *, .facts > *, .top nav > *"), (one) => say("covered in the header", one));
  for (const parent of all(".figures, .tile-head, .section-head, .candidates > li, .letter-head, .numbers, tr")) {
    pairs([...parent.children].filter(seen), (one) => say("covered by its neighbour", one));
  }

  // 3. The texts of a chart are upright, apart from each other, and inside it.
  for (const chart of all(".chart")) {
    const texts = [...chart.querySelectorAll(".xtick text, .ytick text, .annotation-text, .xtitle")];
    const frame = box(chart);
    pairs(texts, (one, other) => say(`overprinted in a chart by "${other.textContent}"`, one));
    for (const text of texts) {
      const place = box(text);
      const angle = /rotate\((-?[\d.]+)/.exec(text.getAttribute("transform") ?? "")?.[1] ?? 0;
      if (Number(angle) !== 0) say("rotated", text);
      const inside =
        place.left >= frame.left - SLACK &&
        place.right <= frame.right + SLACK &&
        place.top >= frame.top - SLACK &&
        place.bottom <= frame.bottom + SLACK;
      if (!inside) say("cut off by its chart", text);
    }
  }

  // 4. A text that is cut off says the whole of it in a title.
  for (const element of all("header *, main *, footer *")) {
    if (element.closest("svg, .chart") || !element.textContent.trim()) continue;
    const style = getComputedStyle(element);
    const hides = (overflow) => overflow === "hidden" || overflow === "clip";
    const cut =
      (hides(style.overflowX) && element.scrollWidth > element.clientWidth + SLACK) ||
      (hides(style.overflowY) && element.scrollHeight > element.clientHeight + SLACK);
    if (cut && !element.closest("[title]:not([title=''])")) say("cut off", element);
  }

  // 5. Numbers, times and buttons stand on one line.
  for (const element of all(".number, .numeric, .probability, .badge, .moment, time, button:not(.chip), nav a, .rank")) {
    const range = document.createRange();
    range.selectNodeContents(element);
    const lines = new Set([...range.getClientRects()].filter((one) => one.width > 0).map((one) => Math.round(one.top / 8)));
    if (lines.size > 1) say("broken across lines", element);
  }

  // 6. No empty band: above each block there is another one close by, or the top of the page.
  const blocks = all("main .card, main .section-head, main .page-head, main .legend, main .notice, main .empty")
    .filter((element) => !element.parentElement.closest(".card, .notice, .empty") && !scrolled(element))
    .concat(all(".predictions"));
  const start = box(document.querySelector("main")).top;
  for (const block of blocks) {
    const mine = box(block);
    const above = blocks
      .map((other) => [other, box(other)])
      .filter(([other, place]) => other !== block && !other.contains(block) && !block.contains(other) && place.top < mine.top)
      .filter(([, place]) => Math.min(place.right, mine.right) - Math.max(place.left, mine.left) > SLACK)
      .map(([, place]) => place.bottom);
    const gap = mine.top - Math.max(start, ...above);
    if (gap > BAND) say(`${Math.round(gap)} empty pixels above`, block);
  }
  return [...new Set(found)];
};
