// A document, opened at a passage, with what is like it.

import { get, post } from "./api.js";
import { announce, confirmed, elsewhere, failure, h, heading, outward, passagePlace, place, spaceName, viewOf } from "./dom.js";
import { forgetFacets } from "./facets.js";
import { rendered } from "./markdown.js";
import { headingsUnder, marked, offsets, shortPlace, spot } from "./text.js";

// As much of a document as is shown at once, and where it begins before a passage that is far in.
const TOKENS = 60_000;
const BEFORE_CHARS = 20_000;
const SHORT_ID = 12;
const SIMILAR = 6;
const LINKED = 20;
const SIMILAR_PASSAGES = 20;
// A mail's answers repeat it: what they repeat is closed at first.
const MAILS = new Set(["message/rfc822", "application/vnd.ms-outlook"]);
const EARLIER = /^Earlier mail(:|$)/;

/** Whether a passage is all that a document says, so that a mark would tell nothing. */
function isWhole(doc, from, to) {
  return doc.start === 0 && doc.end >= doc.chars && !doc.text.slice(0, from).replace(/^#.*$/m, "").trim() && !doc.text.slice(to).trim();
}

export function docView(main, wanted, page) {
  const [id] = wanted.parts;
  const at = wanted.query.get("at");
  const line = wanted.query.get("line");
  const space = wanted.query.get("space");
  const stop = new AbortController();
  let isSource = null;
  let shown = null;

  const body = h("div", { class: "text", "aria-busy": "true" });
  const alike = h("section", { "aria-label": "Like this" });
  const links = h("section", { "aria-label": "Links" });
  const aside = h("aside", { class: "aside" }, links, alike);
  main.append(body);

  async function load(from = null) {
    try {
      const passage = at ? await get(`/v1/passages/${encodeURIComponent(at)}`, { neighbours: 0, space }, stop.signal) : null;
      const begin = from ?? (passage && passage.start > BEFORE_CHARS * 4 ? passage.start - BEFORE_CHARS : 0);
      const doc = await get(`/v1/docs/${encodeURIComponent(passage?.doc_id ?? id)}`, { max_tokens: TOKENS, start: begin || null, space }, stop.signal);
      shown = { doc, passage };
      draw();
      linked(doc);
      similar(doc);
    } catch (error) {
      if (!stop.signal.aborted) main.replaceChildren(failure(error, error.status === 404 ? null : () => load(from)), h("p", {}, h("a", { href: "#/search" }, "To the search")));
    }
  }

  function draw() {
    const { doc, passage } = shown;
    page.title(doc.title);
    // Code is no markdown: a # in it is no heading.
    isSource ??= doc.mime.startsWith("text/x-source-");
    const here = offsets(doc.text);
    const spans = passage ? [[here(passage.start - doc.start), here(passage.end - doc.start)]].filter(([a, b]) => b > a && !isWhole(doc, a, b)) : [];
    const made = () => h("mark", { class: "found" });
    const text = isSource ? h("pre", { class: "source", tabindex: "0" }, marked(doc.text, 0, doc.text.length, spans, made)) : rendered(doc.text, spans, made, MAILS.has(doc.mime) ? EARLIER : undefined);
    body.removeAttribute("aria-busy");
    body.replaceChildren(
      ...doc.warnings.map((said) => h("p", { class: "warning" }, said)),
      doc.start > 0 ? h("button", { type: "button", click: () => load(0) }, "Show from the beginning") : "",
      text,
      doc.end < doc.chars ? h("button", { type: "button", click: () => load(doc.end) }, `Show what follows (${(doc.chars - doc.end).toLocaleString("en")} more characters)`) : "",
    );
    main.replaceChildren(head(doc, passage), h("div", { class: "split" }, body, aside));
    const first = body.querySelector("mark.found");
    if (!first) {
      main.querySelector("h1").focus({ preventScroll: true });
      return;
    }
    first.tabIndex = -1;
    first.id = "passage";
    first.focus({ preventScroll: true });
    first.scrollIntoView({ block: "center" });
    announce(`At the passage, ${spot({ ...passage, line }) ?? "in the text"}`);
  }

  function head(doc, passage) {
    const where = passage ? spot({ ...passage, line }) : null;
    const facts = [spaceName(doc.space, doc.spaces), where, ...headingsUnder(doc.title, passage?.heading ?? []), doc.kind, doc.date, { changed: "the source has changed since", gone: "the source is gone" }[doc.freshness]];
    const other = elsewhere(doc.space, doc.spaces);
    const remove = async () => {
      if (!(await confirmed(`Remove “${doc.title}”? It is found no more, and comes back when it is added again.`, "Remove"))) return;
      try {
        await post(`/v1/docs/${encodeURIComponent(doc.doc_id)}/remove`);
        forgetFacets();
        announce("Removed");
        page.back();
      } catch (error) {
        main.prepend(failure(error));
      }
    };
    return h("div", {},
      heading(doc.title),
      h("p", { class: "where" }, h("span", { class: "path", title: doc.source }, outward(viewOf(doc.source), shortPlace(doc.source))), facts.filter(Boolean).map((fact) => h("span", {}, fact))),
      h("div", { class: "row" },
        doc.tags.map((tag) => h("a", { class: "chip", href: place(["search"], { tag }) }, `#${tag}`)),
        h("span", { class: "grow" }),
        h("button", { type: "button", class: "plain", click: () => { isSource = !isSource; draw(); } }, isSource ? "Formatted" : "Source text"),
        h("a", { class: "button plain", href: place(["search"], { doc: doc.doc_id, space: other }) }, "Search in it"),
        other ? null : h("button", { type: "button", class: "plain danger", id: "remove", click: remove }, "Remove")),
      other ? h("p", { class: "quiet", id: "elsewhere" }, `It is kept in the ${other} space, which this server only reads. `, h("code", {}, `kb --space ${other} rm ${doc.doc_id.slice(0, SHORT_ID)}`), " removes it.") : null);
  }

  async function similar(doc) {
    try {
      const found = await get(`/v1/similar/${encodeURIComponent(at ?? doc.doc_id)}`, { k: SIMILAR_PASSAGES }, stop.signal);
      const best = new Map(found.hits.toReversed().map((hit) => [hit.doc_id, hit]));
      const hits = [...best.values()].toReversed().slice(0, SIMILAR);
      alike.replaceChildren(h("h2", {}, "Like this"),
        hits.length
          ? h("ul", { class: "rows stacked" }, hits.map((hit) => h("li", {},
              h("a", { href: passagePlace(hit, doc.spaces), "data-entry": true }, hit.title),
              h("span", { class: "path" }, [spaceName(hit.source_space, doc.spaces), shortPlace(hit.source), spot(hit)].filter(Boolean).join(" · ")))))
          : h("p", { class: "quiet" }, "Nothing else is like it."));
    } catch {
      // The document is what was asked for; without this it is still all there.
      alike.replaceChildren();
    }
  }

  /** What it links to, and what links to it. */
  async function linked(doc) {
    const ask = (filter) => get("/v1/docs", { [filter]: doc.doc_id, limit: LINKED }, stop.signal);
    try {
      const [to, from] = await Promise.all([ask("links_from"), ask("linked_to")]);
      links.replaceChildren(...linkList("Links to", to), ...linkList("Linked from", from));
    } catch {
      links.replaceChildren();
    }
  }

  function linkList(title, found) {
    if (!found.docs.length) return [];
    const rows = found.docs.map((other) => h("li", {},
      h("a", { href: place(["doc", other.doc_id], { space: elsewhere(other.space, found.spaces ?? []) }), "data-entry": true }, other.title),
      h("span", { class: "path" }, shortPlace(other.source))));
    return [h("h2", {}, found.more ? `${title} (${found.total})` : title), h("ul", { class: "rows stacked" }, rows)];
  }

  load();
  return { stop: () => stop.abort() };
}
