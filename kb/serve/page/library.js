// Everything that is kept, the newest change first.

import { get } from "./api.js";
import { elsewhere, failure, h, heading, notice, place, spaceName } from "./dom.js";
import { ago, many, shortPlace } from "./text.js";

const ROWS = 50;

export function libraryView(main, wanted, page) {
  let stop = new AbortController();
  let space = wanted.query.get("space") ?? "";
  const list = h("ul", { class: "rows" });
  const count = h("p", { class: "lead" });
  const filters = h("div", { class: "filters", hidden: true });
  const foot = h("div", {});
  main.append(heading("Library"), count, filters, list, foot);

  /** Where there is nothing to choose between, what an address says can still be taken off. */
  function drawFilters(spaces) {
    const rows = spaces.length > 1 ? spaces : space ? [space] : [];
    const isFocused = filters.contains(document.activeElement);
    const options = ["", ...rows].map((value) => h("option", { value, selected: value === space }, value ? `${value} space` : "all spaces"));
    filters.hidden = !rows.length;
    filters.replaceChildren(h("select", { id: "filter-space", "aria-label": "Filter by space", change: (event) => choose(event.target.value) }, options));
    if (isFocused) filters.querySelector("select")?.focus();
  }

  function choose(next) {
    space = next;
    page.say(place(["library"], { space }), true);
    begin();
  }

  function begin() {
    stop.abort();
    stop = new AbortController();
    list.replaceChildren();
    foot.replaceChildren();
    load(null, stop.signal);
  }

  async function load(cursor, signal) {
    try {
      const found = await get("/v1/docs", { limit: ROWS, cursor, space, max_tokens: 50_000 }, signal);
      const nowMs = Date.now();
      count.textContent = many(found.total, "document");
      drawFilters(found.spaces);
      list.append(...found.docs.map((doc) => h("li", {},
        h("a", { href: place(["doc", doc.doc_id], { space: elsewhere(doc.space, found.spaces) }), "data-entry": true }, doc.title),
        h("span", { class: "path", title: doc.source }, shortPlace(doc.source)),
        found.spaces.length > 1 ? h("span", { class: "quiet" }, spaceName(doc.space, found.spaces)) : null,
        doc.indexed ? null : h("span", { class: "badge" }, "being read"),
        doc.pages ? h("span", { class: "quiet" }, many(doc.pages, "page")) : null,
        h("span", { class: "when" }, ago(doc.updated_ms, nowMs)))));
      foot.replaceChildren(found.more ? h("button", { type: "button", click: () => load(found.next_cursor, signal) }, "Show more") : "");
      if (!found.total) foot.replaceChildren(notice("Nothing is kept here yet.", "", h("p", {}, h("a", { class: "button", href: "#/add" }, "Add something"))));
    } catch (error) {
      if (signal.aborted) return;
      if (space) drawFilters([]);
      foot.replaceChildren(failure(error, () => load(cursor, signal)));
    }
  }

  begin();
  return {
    update(next) {
      space = next.query.get("space") ?? "";
      begin();
      return true;
    },
    stop: () => stop.abort(),
  };
}
