// The search: a field, its filters, and what is found while one types.

import { get, post } from "./api.js";
import { announce, elsewhere, failure, h, notice, passagePlace, place, spaceName } from "./dom.js";
import { facets } from "./facets.js";
import { ago, headingsUnder, many, marked, offsets, shortPlace, spot, windowOf } from "./text.js";

const PAUSE_MS = 120;
const SLOW_MS = 250;
const SHOWN_CHARS = 420;
const WRAPPED_CHARS = 60;
const K = 20;
const K_MAX = 100;
const LISTS = ["space", "tag", "kind", "pack", "source", "version", "doc"];
const MODES = { hybrid: "words and meaning", lexical: "words alone", dense: "meaning alone" };
const FRESHNESS = { changed: "changed since", gone: "source gone", unknown: "not checked", fresh: "up to date" };

/** What was last opened from here, so that it has the focus when one comes back. */
let opened = null;

/** What an address says of a search. */
function asked(query) {
  const lists = Object.fromEntries(LISTS.map((name) => [name, query.getAll(name)]));
  lists.space = lists.space.slice(-1);
  const mode = query.get("mode") in MODES ? query.get("mode") : "hybrid";
  const k = Math.min(K_MAX, Math.max(1, Number.parseInt(query.get("k"), 10) || K));
  return { q: query.get("q") ?? "", ...lists, mode, k, explain: query.get("explain") === "1" };
}

function address(state) {
  const { mode, k, explain, ...rest } = state;
  return place(["search"], { ...rest, mode: mode === "hybrid" ? null : mode, k: k === K ? null : k, explain: explain ? "1" : null });
}

export function searchView(main, wanted, page) {
  let state = asked(wanted.query);
  let running = null;
  let timer = 0;
  let isEdited = false;
  let known = null;

  const field = h("input", {
    id: "q", type: "search", autocomplete: "off", autocapitalize: "off", spellcheck: "false", enterkeyhint: "search",
    placeholder: "Search what you keep", "aria-label": "Search", "aria-describedby": "status", input: typed, compositionend: typed, focus: () => { isEdited = false; },
  });
  const filters = h("div", { class: "filters" });
  // On a phone the filters take a row of their own only when they are wanted.
  const opener = h("button", { type: "button", id: "more-filters", class: "plain", "aria-expanded": "false", click: () => opener.setAttribute("aria-expanded", String(opener.getAttribute("aria-expanded") !== "true")) }, "Filters");
  const list = h("div", { class: "results", "aria-label": "Results", role: "region" });
  const form = h("form", { class: "searchbox", role: "search", submit: entered }, field, h("kbd", { class: "hint", "aria-hidden": "true" }, "/"));
  main.append(h("h1", { class: "unseen" }, "Search"), form, filters, list);
  list.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-entry]");
    if (link) opened = link.getAttribute("href");
  });

  function typed(event) {
    clearTimeout(timer);
    // What an input method has not turned into words yet is no query.
    if (event.isComposing) return;
    timer = setTimeout(() => {
      const isNew = !isEdited && state.q !== "";
      isEdited = true;
      change({ q: field.value }, isNew);
    }, PAUSE_MS);
  }

  function entered(event) {
    event.preventDefault();
    clearTimeout(timer);
    if (field.value !== state.q) change({ q: field.value }, true);
    else list.querySelector("[data-entry]")?.focus();
  }

  function change(part, isNew = true) {
    state = { ...state, k: K, ...part };
    page.say(address(state), isNew);
    drawFilters();
    search();
  }

  function drawFilters() {
    const focused = document.activeElement?.id;
    const drop = (name, value) => () => change({ [name]: state[name].filter((one) => one !== value) });
    const label = { space: (value) => `${value} space`, doc: () => "this document", pack: (value) => `pack ${value}`, tag: (value) => `#${value}`, kind: (value) => value, source: (value) => value.split("/").pop(), version: (value) => `version ${value}` };
    const chips = LISTS.flatMap((name) => state[name].map((value) =>
      h("button", { type: "button", class: "chip on", "aria-label": `Remove the filter ${name} ${value}`, click: drop(name, value) }, label[name](value), h("span", { "aria-hidden": "true" }, " ×"))));
    filters.replaceChildren(
      opener, choice("space", "Space", known?.spaces.length > 1 ? known.spaces.map((value) => ({ value })) : []), choice("kind", "Kind", known?.kinds), choice("tag", "Tag", known?.tags), choice("pack", "Pack", known?.packs), choice("source", "Source", known?.sources), choice("version", "Version", known?.versions),
      h("select", { id: "mode", "aria-label": "How to search", change: (event) => change({ mode: event.target.value }) },
        Object.entries(MODES).map(([value, text]) => h("option", { value, selected: value === state.mode }, text))),
      h("label", { class: "check", for: "explain" }, h("input", { id: "explain", type: "checkbox", checked: state.explain, change: (event) => change({ explain: event.target.checked }) }), "Explain"),
      ...chips,
    );
    if (focused) filters.querySelector(`#${CSS.escape(focused)}`)?.focus();
  }

  function choice(name, title, values) {
    const open = (values ?? []).filter(({ value }) => !state[name].includes(value));
    if (!open.length) return "";
    // A document has many tags, and lies in one space.
    const before = name === "space" ? [] : state[name];
    return h("select", { id: `filter-${name}`, "aria-label": `Filter by ${name}`, change: (event) => change({ [name]: [...before, event.target.value] }) },
      h("option", { value: "", selected: true }, title), open.map(({ value, docs }) => h("option", { value }, docs === undefined ? value : `${value} (${docs})`)));
  }

  async function search() {
    running?.abort();
    const mine = new AbortController();
    running = mine;
    if (!state.q.trim()) {
      await start(mine.signal);
      return;
    }
    const slow = setTimeout(() => list.setAttribute("aria-busy", "true"), SLOW_MS);
    try {
      const found = await pageOf({ k: state.k }, mine.signal);
      if (!mine.signal.aborted) drawHits(found);
    } catch (error) {
      if (mine.signal.aborted) return;
      list.replaceChildren(failure(error, search));
    } finally {
      clearTimeout(slow);
      if (running === mine) list.removeAttribute("aria-busy");
    }
  }

  function pageOf(part, signal) {
    return get("/v1/search", { ...state, ...part, explain: state.explain ? "true" : null, marks: "true" }, signal);
  }

  /** The next page, after what is shown; its first hit has the focus. */
  async function showMore(button, cursor) {
    const mine = running;
    button.disabled = true;
    try {
      const found = await pageOf({ k: K, cursor }, mine.signal);
      if (mine.signal.aborted) return;
      const rows = hitRows(found);
      const hits = list.querySelector(".hits");
      hits.append(...rows);
      list.querySelector(".count").textContent = counted(hits.children.length, found.next_cursor);
      button.replaceWith(...found.warnings.map((text) => h("p", { class: "warning" }, text)), ...moreButton(found));
      state = { ...state, k: Math.min(K_MAX, hits.children.length) };
      page.say(address(state), false);
      announce(`${many(rows.length, "more hit")}`);
      rows[0]?.querySelector("[data-entry]")?.focus();
    } catch (error) {
      if (!mine.signal.aborted) button.replaceWith(failure(error, search));
    }
  }

  function moreButton(found) {
    if (!found.next_cursor) return [];
    const button = h("button", { type: "button", id: "more", click: () => showMore(button, found.next_cursor) }, "Show more");
    return [button];
  }

  function counted(count, cursor) {
    return cursor ? `The best ${many(count, "hit")}` : many(count, "hit");
  }

  function hitRows(found) {
    return found.hits.map((hit, i) => row(hit, found.marks[i], found.spaces, state, change));
  }

  async function start(signal) {
    try {
      const recent = await get("/v1/docs", { limit: 6, space: state.space }, signal);
      if (signal.aborted) return;
      list.replaceChildren(...(recent.docs.length ? latest(recent) : [state.space.length ? nothing(state, change) : welcome()]));
      announce("");
    } catch (error) {
      if (!signal.aborted) list.replaceChildren(failure(error, search));
    }
  }

  function drawHits(found) {
    announce(found.hits.length && found.hits.every((hit) => hit.weak) ? "Nothing fits" : many(found.hits.length, "hit"));
    list.replaceChildren(
      ...found.warnings.map((text) => h("p", { class: "warning" }, text)),
      ...(found.hits.length && found.hits.every((hit) => hit.weak) ? [h("p", { class: "warning" }, "Nothing here fits the query; these passages are merely the nearest.")] : []),
      ...(found.hits.length ? [h("p", { class: "count" }, counted(found.hits.length, found.next_cursor))] : []),
      found.hits.length ? h("ol", { class: "hits" }, hitRows(found)) : nothing(state, change),
      ...moreButton(found),
    );
    if (opened) {
      [...list.querySelectorAll("[data-entry]")].find((link) => link.getAttribute("href") === opened)?.focus();
      opened = null;
    }
  }

  field.value = state.q;
  drawFilters();
  search();
  facets().then((found) => { known = found; drawFilters(); }, () => {});
  // Where a finger types, the keyboard would cover what there is to see.
  if (!opened && !matchMedia("(pointer: coarse)").matches) field.focus();

  return {
    update(next) {
      state = asked(next.query);
      if (document.activeElement !== field || field.value.trim() !== state.q.trim()) field.value = state.q;
      drawFilters();
      search();
      return true;
    },
    stop() {
      clearTimeout(timer);
      running?.abort();
    },
  };
}

function row(hit, marks, spaces, state, change) {
  const where = [spaceName(hit.source_space, spaces), hit.site_version, spot(hit), ...headingsUnder(hit.title, hit.heading)].filter(Boolean);
  const tags = hit.tags.map((tag) => h("button", { type: "button", class: "chip", "aria-label": `Only with the tag ${tag}`, click: () => change({ tag: [...new Set([...state.tag, tag])] }) }, `#${tag}`));
  return h("li", { class: "hit" },
    h("h2", {}, h("a", { href: passagePlace(hit, spaces), "data-entry": true }, hit.title), hit.weak ? " " : null, hit.weak ? h("span", { class: "badge", title: "It hardly fits the question" }, "weak") : null),
    h("p", { class: "where" }, h("span", { class: "path", title: hit.source }, shortPlace(hit.source)), where.map((part) => h("span", {}, part))),
    passage(hit, marks),
    h("div", { class: "meta" }, tags,
      h("span", { class: "kind" }, hit.kind),
      h("span", { class: `fresh is-${hit.freshness}` }, FRESHNESS[hit.freshness]),
      h("span", { class: "score", title: "How well it fits the question, from 0 to 1" }, hit.score.toFixed(2)),
      answers(hit, spaces, state.q)),
    state.explain ? explained(hit) : null);
}

/** Says that a hit is what was sought; of the space that new things go to. */
function answers(hit, spaces, query) {
  if (spaces.length > 1 && hit.source_space !== spaces[0]) return null;
  const button = h("button", { type: "button", class: "plain answers", title: "Remember it as the answer to this question", click: note }, "This was the one");
  async function note() {
    button.disabled = true;
    try {
      await post("/v1/questions", { query, id: hit.doc_id });
      button.textContent = "Remembered";
      announce("Remembered");
    } catch (error) {
      button.replaceWith(failure(error, null));
    }
  }
  return button;
}

function passage({ text, snippet }, marks) {
  const here = offsets(text);
  const spans = marks.map(([a, b]) => [here(a), here(b)]);
  // The sentence that shows why it was found is the part that must be seen.
  const [from, to] = windowOf(text, snippet ? [[here(snippet.start), here(snippet.end)]] : spans, SHOWN_CHARS);
  const rows = lines(text, from, to, spans);
  if (from > 0) rows[0]?.prepend("… ");
  if (to < text.length) rows.at(-1)?.append(" …");
  return h("div", { class: "passage" }, rows);
}

/** The lines of a part of a text: headings bold, items of lists as such, without markdown's marks. */
function lines(text, from, to, spans) {
  const rows = [];
  // A line as long as this was broken by whoever wrote it for want of room, and runs on.
  let runsOn = false;
  for (const found of text.slice(from, to).matchAll(/[^\n\f]*(?:[\n\f]|$)/g)) {
    const line = found[0].replace(/[\n\f]$/, "");
    if (/^[\s|:-]*$/.test(line)) {
      runsOn = false;
      continue;
    }
    const lead = /^\s*(#{1,6}\s+|>\s?|[-*+]\s+|\d{1,3}[.)]\s+)?/.exec(line);
    const isRow = /^\s*\|/.test(line);
    const start = from + found.index + (isRow ? line.indexOf("|") + 1 : lead[0].length);
    const words = marked(text, start, from + found.index + line.replace(/\s*\|\s*$/, "").length, spans);
    if (isRow) for (const node of words) node.textContent = node.textContent.replace(/\s*\|\s*/g, " · ");
    const mark = lead[1]?.trim() ?? "";
    if (runsOn && !mark && !isRow) rows.at(-1).append(" ", ...words);
    else if (mark.startsWith("#")) rows.push(h("b", {}, words));
    else if (mark && mark !== ">") rows.push(h("span", { class: "item", "data-number": /\d/.test(mark) ? mark : null }, words));
    else rows.push(h("span", {}, words));
    runsOn = !isRow && !mark.startsWith("#") && line.length >= WRAPPED_CHARS;
  }
  return rows;
}

function explained(hit) {
  const rank = (value) => value ?? "not brought";
  const rows = { "rank by words": rank(hit.legs.lexical), "rank by meaning": rank(hit.legs.dense), fit: hit.explain?.fit, "rank score": hit.explain?.rank_score, "fused score": hit.explain?.fused, boost: hit.explain?.boost };
  return h("dl", { class: "explain" }, Object.entries(rows).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value ?? "–"))]));
}

function nothing(state, change) {
  const isLimited = LISTS.some((name) => state[name].length);
  return notice("Nothing was found.",
    isLimited ? "The filters may keep out what you look for." : "Try other words, or fewer. Meaning counts too, unless you search by words alone.",
    isLimited ? h("button", { type: "button", click: () => change(Object.fromEntries(LISTS.map((name) => [name, []]))) }, "Search without filters") : null,
    state.q ? h("p", {}, h("a", { href: place(["ask"], { q: state.q }) }, "Ask it as a question"), " instead.") : null);
}

function welcome() {
  return notice("Nothing is kept here yet.", "Add a file, a page or a text, and it can be found a moment later.",
    h("p", {}, h("a", { class: "button", href: "#/add" }, "Add something")));
}

function latest(recent) {
  const nowMs = Date.now();
  return [
    h("p", { class: "lead" }, `${many(recent.total, "document")} to search. The latest:`),
    h("ul", { class: "rows" }, recent.docs.map((doc) => h("li", {},
      h("a", { href: place(["doc", doc.doc_id], { space: elsewhere(doc.space, recent.spaces) }), "data-entry": true }, doc.title),
      h("span", { class: "path" }, [spaceName(doc.space, recent.spaces), shortPlace(doc.source)].filter(Boolean).join(" · ")), h("span", { class: "when" }, ago(doc.updated_ms, nowMs))))),
  ];
}
