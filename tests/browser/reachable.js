// Everything that the Tab key must reach, each with a number: of a group of radio buttons only the chosen one.
() =>
  [...document.querySelectorAll("a[href], button, select, input, [tabindex='0']")]
    .filter((element) => element.checkVisibility() && !element.disabled && !element.closest("svg"))
    .filter((element) => element.type !== "radio" || element.checked)
    .map((element, i) => {
      element.dataset.stop = i;
      return `${i} ${element.outerHTML.slice(0, 90)}`;
    });
