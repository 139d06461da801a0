// Changes need the worker's token. It is asked for in a dialog that stays open while the worker refuses it.

import { post, token } from "./api.js";
import { h, fill, problem } from "./dom.js";

/** How to switch changes on, for a worker that was started without a token. */
export function howToAllow() {
  return h(
    "div",
    { class: "notice" },
    h(
      "p",
      {},
      "This worker only shows. To let people with a token change things from here, start it with the variable ",
      h("code", {}, "ADATKG_STREAM_WEB_TOKEN"),
      ":",
    ),
    h("code", { class: "command" }, "ADATKG_STREAM_WEB_TOKEN=… adatkg worker"),
  );
}

/** POST a change. Resolves with the answer, or with null when the user thought better of it. */
export async function change(title, path, body) {
  const kept = token.get();
  if (kept) {
    try {
      return await post(path, body, kept);
    } catch (error) {
      if (error.status !== 401) throw error;
      token.set(null);
      return ask(title, path, body, error.message);
    }
  }
  return ask(title, path, body, null);
}

function ask(title, path, body, refused) {
  const trouble = h("div", {}, refused ? problem(refused) : null);
  const input = h("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false" });
  const send = h("button", { type: "submit" }, title);
  const dialog = h(
    "dialog",
    { "aria-labelledby": "token-title" },
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "token-title" }, title),
      h("p", { class: "hint" }, "This changes what the worker does. Its token is kept in this tab only."),
      h("label", { for: "token" }, "Token"),
      input,
      trouble,
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", class: "quiet", on: { click: () => dialog.close() } }, "Cancel"),
        send,
      ),
    ),
  );
  const before = document.activeElement;
  document.body.append(dialog);
  return new Promise((resolve, reject) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      before?.focus?.();
      resolve(null);
    });
    dialog.querySelector("form").addEventListener("submit", async (event) => {
      event.preventDefault();
      if (/[^!-~]/.test(input.value)) {
        fill(trouble, problem("A token has no blanks and only letters, digits and signs of ASCII."));
        return;
      }
      send.disabled = true;
      trouble.replaceChildren();
      try {
        const answer = await post(path, body, input.value);
        token.set(input.value);
        resolve(answer);
        dialog.close();
      } catch (error) {
        send.disabled = false;
        if (error.status === 401) {
          fill(trouble, problem(error.message));
          input.select();
          return;
        }
        // The token was right, or nobody knows; either way the answer belongs to the page.
        if (error.status >= 400) token.set(input.value);
        reject(error);
        dialog.close();
      }
    });
    dialog.showModal();
  });
}
