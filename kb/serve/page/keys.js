// The keyboard: what moves the focus through a list, and the page that tells of all keys.

import { h } from "./dom.js";

/** Move the focus among the entries of a view; false where there are none. */
export function moveFocus(root, step) {
  const entries = [...root.querySelectorAll("[data-entry]")];
  if (!entries.length) return false;
  const now = entries.indexOf(document.activeElement);
  const next = now < 0 ? (step > 0 ? 0 : -1) : now + step;
  if (next < 0) {
    const field = root.querySelector("#q");
    if (!field) return false;
    field.focus();
  } else entries[Math.min(next, entries.length - 1)].focus();
  document.activeElement.scrollIntoView({ block: "nearest" });
  return true;
}

/** Show all keys. */
export function keysDialog(views) {
  const rows = [
    [["/"], "to the search field"],
    [["↓", "j"], "the next entry"],
    [["↑", "k"], "the one before"],
    [["Enter"], "open it"],
    [["Esc"], "leave the field, or go back"],
    ...Object.values(views).filter((view) => view.key).map((view) => [[`g ${view.key}`], view.title]),
    [["?"], "this list"],
  ];
  const dialog = h("dialog", { class: "keys", "aria-labelledby": "keys-title", close: () => dialog.remove() },
    h("h2", { id: "keys-title" }, "Keys"),
    h("dl", {}, rows.flatMap(([keys, what]) => [h("dt", {}, keys.map((key) => h("kbd", {}, key))), h("dd", {}, what)])),
    h("div", { class: "row end" }, h("button", { type: "button", click: () => dialog.close() }, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}
