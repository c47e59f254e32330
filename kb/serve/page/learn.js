// What is prepared for reading: topics with their subjects, and packs with their links.

import { get, tool } from "./api.js";
import { failure, h, heading, notice, place } from "./dom.js";
import { graph } from "./graph.js";
import { rendered } from "./markdown.js";
import { many } from "./text.js";

const DOCS = 200;

/** Show what `make` gives, or what went wrong. */
function filled(main, stop, make) {
  const load = async () => {
    try {
      const nodes = await make(stop.signal);
      if (!stop.signal.aborted) main.replaceChildren(...nodes);
      main.querySelector("h1")?.focus({ preventScroll: true });
    } catch (error) {
      if (!stop.signal.aborted) main.replaceChildren(heading("Not there"), failure(error, load));
    }
  };
  load();
  return { stop: () => stop.abort() };
}

export function topicsView(main, { parts }, page) {
  const [topic, subject] = parts;
  return filled(main, new AbortController(), async (signal) => {
    if (!topic) return topicList(await get("/v1/topics", {}, signal));
    const found = await tool("learn", subject ? { topic, subjects: subject } : { topic }, signal);
    page.title(subject ?? topic);
    const up = h("p", {}, h("a", { href: subject ? place(["topics", topic]) : "#/topics" }, subject ? `← ${topic}` : "← Topics"));
    const said = [...found.warnings, found.truncated, ...found.left_out.map((one) => `${one.subject}: ${one.reason}`)].filter(Boolean);
    const warnings = said.map((text) => h("p", { class: "warning" }, text));
    if (subject) return [up, heading(subject), ...warnings, rendered(found.text)];
    return [up, heading(found.topic), ...warnings,
      h("ul", { class: "rows" }, found.subjects.map((slug) => h("li", {}, h("a", { href: place(["topics", topic, slug]), "data-entry": true }, slug)))),
      found.subjects.length ? "" : notice("Nothing can be read here yet.")];
  });
}

function topicList({ topics }) {
  return [heading("Topics"),
    topics.length
      ? h("ul", { class: "rows stacked" }, topics.map((one) => h("li", {}, h("a", { href: place(["topics", one.id]), "data-entry": true }, one.title ?? one.id), h("span", { class: "quiet" }, one.introduction ?? ""))))
      : notice("There are no topics.", "A topic is a folder of texts to learn from. The settings name it: subjects = \"FOLDER\" in a table [kb.topic.NAME].")];
}

export function packsView(main, { parts, query }, page) {
  const [pack] = parts;
  const doc = query.get("doc");
  return filled(main, new AbortController(), async (signal) => {
    if (!pack) return packList(await get("/v1/packs", { limit: DOCS }, signal));
    const [found, read] = await Promise.all([
      get("/v1/packs", { pack, limit: DOCS, max_tokens: 100_000 }, signal),
      doc ? tool("kb_pack_read", { pack, doc, max_tokens: 50_000 }, signal) : null,
    ]);
    page.title(pack);
    return [
      h("p", {}, h("a", { href: "#/packs" }, "← Packs")), heading(pack, h("span", { class: "quiet" }, many(found.total, "document"))),
      ...found.warnings.map((text) => h("p", { class: "warning" }, text)),
      h("div", { class: "split even" },
        h("div", {}, read ? packDoc(pack, read) : packDocs(pack, found.docs)),
        drawn(pack, found.docs, doc)),
    ];
  });
}

function packList({ packs }) {
  return [heading("Packs"),
    packs.length
      ? h("ul", { class: "rows" }, packs.map((one) => h("li", {}, h("a", { href: place(["packs", one.selector ?? one.pack_id]), "data-entry": true }, one.selector ?? one.pack_id), h("span", { class: "quiet" }, `version ${one.version}`))))
      : notice("There are no packs.", "A pack is a set of documents that link to each other. `kb pack add` takes one in.")];
}

function packDocs(pack, docs) {
  return h("ul", { class: "rows stacked" }, docs.map((one) => h("li", {}, h("a", { href: place(["packs", pack], { doc: one.selector }), "data-entry": true }, one.title), h("span", { class: "quiet" }, one.summary))));
}

function packDoc(pack, { document: doc, text, warnings }) {
  const links = doc.related.map((edge) => h("li", {}, h("span", { class: "badge" }, edge.type.replaceAll("_", " ")), h("a", { href: place(["packs", pack], { doc: edge.target }), "data-entry": true }, edge.target)));
  return h("article", {},
    /^\s*# /.test(text ?? "") ? null : h("h2", {}, doc.title),
    h("p", { class: "where" }, h("span", { class: "path" }, doc.selector), h("span", {}, doc.kind)),
    warnings.map((said) => h("p", { class: "warning" }, said)),
    text === null ? null : rendered(text),
    links.length ? [h("h3", {}, "Links"), h("ul", { class: "rows" }, links)] : null,
    h("p", {}, h("a", { href: place(["packs", pack]) }, "All documents of the pack")));
}

function drawn(pack, docs, here) {
  const number = new Map(docs.flatMap((one, i) => [[one.id, i], [one.selector, i]]));
  const links = docs.flatMap((one, i) => one.related.filter((edge) => number.has(edge.target)).map((edge) => [i, number.get(edge.target), edge.type])).filter(([from, to]) => from !== to);
  const nodes = docs.map((one) => ({ label: one.title, href: place(["packs", pack], { doc: one.selector }), isHere: here === one.selector || here === one.id }));
  return graph(nodes, links, `How the documents of ${pack} link`);
}
