// Everything that is kept, the newest change first.

import { get } from "./api.js";
import { failure, h, heading, notice, place } from "./dom.js";
import { ago, many, shortPlace } from "./text.js";

const ROWS = 50;

export function libraryView(main) {
  const stop = new AbortController();
  const list = h("ul", { class: "rows" });
  const count = h("p", { class: "lead" });
  const foot = h("div", {});
  main.append(heading("Library"), count, list, foot);

  async function load(cursor) {
    try {
      const found = await get("/v1/docs", { limit: ROWS, cursor, max_tokens: 50_000 }, stop.signal);
      const nowMs = Date.now();
      count.textContent = many(found.total, "document");
      list.append(...found.docs.map((doc) => h("li", {},
        h("a", { href: place(["doc", doc.doc_id]), "data-entry": true }, doc.title),
        h("span", { class: "path", title: doc.source }, shortPlace(doc.source)),
        doc.indexed ? null : h("span", { class: "badge" }, "being read"),
        doc.pages ? h("span", { class: "quiet" }, many(doc.pages, "page")) : null,
        h("span", { class: "when" }, ago(doc.updated_ms, nowMs)))));
      foot.replaceChildren(found.more ? h("button", { type: "button", click: () => load(found.next_cursor) }, "Show more") : "");
      if (!found.total) list.replaceWith(notice("Nothing is kept here yet.", "", h("p", {}, h("a", { class: "button", href: "#/add" }, "Add something"))));
    } catch (error) {
      if (!stop.signal.aborted) foot.replaceChildren(failure(error, () => load(cursor)));
    }
  }

  load(null);
  return { stop: () => stop.abort() };
}
