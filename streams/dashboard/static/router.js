// Which page the address names. A page is opened with a signal that ends when it is left.

/** The path's parts, decoded, and the parameters behind it. */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path
    .split("/")
    .filter((part) => part !== "")
    .map(decode);
  return { page: parts[0] ?? "", graph: parts[1] ?? null, entity: parts[2] ?? null, query: new URLSearchParams(query) };
}

/** Open pages as the address says; `open(route, signal)` is called for each, after the one before has been left. */
export function follow(open) {
  let leave = new AbortController();
  let first = true;
  const go = () => {
    // An anchor inside the page, such as that of the skip link, is no route.
    if (location.hash && !location.hash.startsWith("#/")) return;
    leave.abort();
    leave = new AbortController();
    open(parse(location.hash), leave.signal, first);
    first = false;
  };
  window.addEventListener("hashchange", go);
  go();
  return go;
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
