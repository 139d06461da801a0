// What a screen reader would have no words for, and other things that break the page for it.
() => {
  const named = (element) =>
    (
      element.getAttribute("aria-label") ||
      (element.getAttribute("aria-labelledby") ?? "")
        .split(" ")
        .map((id) => document.getElementById(id)?.textContent)
        .join("") ||
      [...(element.labels ?? [])].map((label) => label.textContent).join("") ||
      element.textContent
    ).trim();
  const bad = [];
  for (const element of document.querySelectorAll("a, button, input, select, [role], nav, section, dialog, table")) {
    const nameless = ["TABLE", "SPAN", "DIV"].includes(element.tagName) && element.getAttribute("role") !== "img";
    if (!element.closest("svg") && !nameless && !named(element)) bad.push(`no name: ${element.outerHTML.slice(0, 80)}`);
  }
  for (const image of document.querySelectorAll("img:not([alt])")) bad.push(`no alt: ${image.src}`);
  for (const cell of document.querySelectorAll("th:not([scope])")) bad.push(`no scope: ${cell.textContent}`);
  const ids = [...document.querySelectorAll("[id]:not(svg *)")].map((element) => element.id);
  for (const id of ids.filter((one, i) => ids.indexOf(one) !== i)) bad.push(`twice: #${id}`);
  for (const what of ["h1", "main", "header", "footer"]) {
    const count = document.querySelectorAll(what).length;
    if (count !== 1) bad.push(`${count} of ${what}`);
  }
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map((heading) => Number(heading.tagName[1]));
  levels.forEach((level, i) => {
    if (level > (levels[i - 1] ?? 0) + 1) bad.push(`h${level} after h${levels[i - 1]}`);
  });
  if (!document.documentElement.lang) bad.push("no language");
  return bad;
};
