// The worker's routes. A refusal is an Error with the server's own words and its status.

const TOKEN = "adatkg-token";
const PATIENCE = 45_000; // milliseconds; an answer to a question may wait for a batch of thousands

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** GET a route; `signal` ends it when its page is left. */
export function get(path, parameters = {}, signal = null) {
  const query = new URLSearchParams(parameters).toString();
  return call(query ? `${path}?${query}` : path, {}, signal);
}

/** POST a body; `token` is for routes that change something. */
export function post(path, body, token = null, signal = null) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  return call(path, { method: "POST", headers, body: JSON.stringify(body) }, signal);
}

/** A route of a graph. */
export const ofGraph = (graph, what) => `/api/graphs/${encodeURIComponent(graph)}/${what}`;

/** The token lives as long as the tab, and nowhere else. */
export const token = {
  get: () => {
    try {
      return sessionStorage.getItem(TOKEN);
    } catch {
      return null;
    }
  },
  set: (value) => {
    try {
      if (value) sessionStorage.setItem(TOKEN, value);
      else sessionStorage.removeItem(TOKEN);
    } catch {
      /* storage is switched off: it is asked for each time */
    }
  },
};

/** Whether an error only says that its page was left meanwhile. */
export const isLeft = (error) => error.name === "AbortError";

async function call(path, options, signal) {
  const signals = [AbortSignal.timeout(PATIENCE), ...(signal ? [signal] : [])];
  let answer;
  try {
    answer = await fetch(path, {
      ...options,
      signal: AbortSignal.any(signals),
      cache: "no-store",
      credentials: "omit",
    });
  } catch (error) {
    if (isLeft(error)) throw error;
    const what = error.name === "TimeoutError" ? "did not answer in time" : "cannot be reached";
    throw new Refused(`The worker ${what}; is it running?`, 0);
  }
  const body = await answer.json().catch((error) => {
    if (isLeft(error)) throw error;
    return null;
  });
  if (!answer.ok || body === null) {
    throw new Refused(body?.error ?? `The worker answered with status ${answer.status}.`, answer.status);
  }
  return body;
}
