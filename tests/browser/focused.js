// The number of the element that has the focus, and whether one sees that it has.
() => {
  const element = document.activeElement;
  const shown = [element, element.nextElementSibling].some(
    (one) => one && getComputedStyle(one).outlineStyle !== "none",
  );
  return [element.dataset.stop ?? null, shown];
};
