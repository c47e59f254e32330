// Markdown as elements: a small part of it, read in linear time, with every text kept as text.

import { h, outward } from "./dom.js";
import { marked } from "./text.js";

const DEPTH_MAX = 3;
// Every part is bounded, so that no line costs more than a fixed number of steps a character.
const TOKEN = new RegExp(
  [
    String.raw`\\(?<escaped>[!-/:-@[-\x60{-~])`,
    "`(?<code>[^`]{1,500})`",
    String.raw`!\[(?<alt>[^\[\]]{0,500})\]\(\s{0,5}<?(?<image>[^()\s<>]{0,2000})>?(?:\s{1,5}"[^"]{0,300}")?\s{0,5}\)`,
    String.raw`\[(?<label>[^\[\]]{1,500})\]\(\s{0,5}<?(?<target>[^()\s<>]{0,2000})>?(?:\s{1,5}"[^"]{0,300}")?\s{0,5}\)`,
    String.raw`\*\*(?=\S)(?<strong>[^*]{1,1000})\*\*`,
    String.raw`\*(?=\S)(?<em>[^*\n]{1,500})\*`,
    String.raw`(?<![\p{L}\p{N}_])_(?=\S)(?<under>[^_\n]{1,500})_(?![\p{L}\p{N}_])`,
    String.raw`(?<![\p{L}\p{N}])<?(?<bare>https?:\/\/[^\s<>()\[\]"]{1,2000})>?`,
  ].join("|"),
  "gdu",
);

/**
 * A text as elements. `spans` are marked, as the element `made` makes; both in offsets of `text`.
 * Sections whose heading matches `folds` are closed, but for those with a mark in them.
 */
export function rendered(text, spans = [], made = undefined, folds = undefined) {
  const root = h("div", { class: "prose" });
  const reader = new Reader(text, spans, made);
  reader.blocks(root);
  return folds ? folded(root, folds) : root;
}

function folded(root, folds) {
  let section = null;
  for (const node of [...root.children]) {
    if (folds.test(node.textContent) && /^H\d$/.test(node.tagName)) {
      section = h("details", {}, h("summary", {}, ...node.childNodes));
      node.replaceWith(section);
    } else section?.append(node);
    if (section?.querySelector("mark")) section.open = true;
  }
  return root;
}

class Reader {
  constructor(text, spans, made) {
    this.text = text;
    this.spans = spans;
    this.made = made;
    this.page = 1;
    this.lines = [];
    for (let at = 0; at <= text.length; ) {
      const found = text.indexOf("\n", at);
      const end = found < 0 ? text.length : found;
      this.lines.push([at, end]);
      at = end + 1;
    }
  }

  words(start, end) {
    return marked(this.text, start, end, this.spans, this.made);
  }

  line(i) {
    const [start, end] = this.lines[i];
    return this.text.slice(start, end);
  }

  blocks(root) {
    for (let i = 0; i < this.lines.length; ) i = this.block(root, i);
  }

  block(root, i) {
    const line = this.line(i);
    const [start, end] = this.lines[i];
    if (line.includes("\f")) return this.leaf(root, i);
    if (!line.trim()) return i + 1;
    const head = /^\s{0,3}(#{1,6})\s+/.exec(line);
    if (head) {
      const level = Math.min(6, head[1].length + 1);
      root.append(h(`h${level}`, {}, this.inline(start + head[0].length, end)));
      return i + 1;
    }
    if (/^\s{0,3}(```|~~~)/.test(line)) return this.fence(root, i);
    if (/^\s{0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) {
      root.append(h("hr"));
      return i + 1;
    }
    if (/^\s*\|/.test(line) && i + 1 < this.lines.length && /^\s*\|[\s:|-]+$/.test(this.line(i + 1))) {
      return this.table(root, i);
    }
    if (/^\s{0,3}>/.test(line)) return this.quote(root, i);
    if (ITEM.test(line)) return this.list(root, i);
    return this.paragraph(root, i);
  }

  leaf(root, i) {
    const [start, end] = this.lines[i];
    let at = start;
    for (const part of this.text.slice(start, end).split("\f")) {
      if (at > start) {
        this.page += 1;
        root.append(h("p", { class: "leaf" }, `Page ${this.page}`));
      }
      if (part.trim()) root.append(h("p", {}, this.inline(at, at + part.length)));
      at += part.length + 1;
    }
    return i + 1;
  }

  fence(root, i) {
    const mark = /(```|~~~)/.exec(this.line(i))[1];
    let last = i + 1;
    while (last < this.lines.length && !this.line(last).trimStart().startsWith(mark)) last += 1;
    const from = Math.min(this.lines[i][1] + 1, this.text.length);
    const to = last > i + 1 ? this.lines[last - 1][1] : from;
    root.append(h("pre", { tabindex: "0" }, h("code", {}, this.words(from, to))));
    return last + 1;
  }

  table(root, i) {
    const cells = (row, tag) => {
      const [start] = this.lines[row];
      const found = [...this.line(row).matchAll(/[^|\\]*(?:\\.[^|\\]*)*/g)].filter((cell) => cell[0].trim());
      return h("tr", {}, found.map((cell) => {
        const lead = cell[0].length - cell[0].trimStart().length;
        const from = start + cell.index + lead;
        return h(tag, {}, this.inline(from, from + cell[0].trim().length));
      }));
    };
    const body = h("tbody");
    let last = i + 2;
    for (; last < this.lines.length && /^\s*\|/.test(this.line(last)); last += 1) body.append(cells(last, "td"));
    const table = h("table", {}, h("thead", {}, cells(i, "th")), body);
    root.append(h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" }, table));
    return last;
  }

  quote(root, i) {
    const node = h("blockquote");
    let last = i;
    for (; last < this.lines.length; last += 1) {
      const lead = /^\s{0,3}>\s?/.exec(this.line(last));
      if (!lead) break;
      const [start, end] = this.lines[last];
      node.append(h("p", {}, this.inline(start + lead[0].length, end)));
    }
    root.append(node);
    return last;
  }

  list(root, i) {
    const ordered = /\d/.test(ITEM.exec(this.line(i))[2]);
    const node = h(ordered ? "ol" : "ul", ordered ? { start: Number.parseInt(ITEM.exec(this.line(i))[2], 10) } : {});
    let last = i;
    let item = null;
    for (; last < this.lines.length; last += 1) {
      const line = this.line(last);
      const [start, end] = this.lines[last];
      const found = ITEM.exec(line);
      if (found && /\d/.test(found[2]) === ordered) {
        const depth = Math.min(4, Math.floor(found[1].replaceAll("\t", "    ").length / 2));
        item = h("li", { class: depth ? `deep${depth}` : null }, this.inline(start + found[0].length, end));
        node.append(item);
      } else if (item && !found && /^\s+\S/.test(line)) {
        item.append(" ", ...this.inline(start + line.search(/\S/), end));
      } else break;
    }
    root.append(node);
    return last;
  }

  paragraph(root, i) {
    let last = i + 1;
    while (last < this.lines.length && !OPENS.test(this.line(last))) last += 1;
    root.append(h("p", {}, this.inline(this.lines[i][0], this.lines[last - 1][1])));
    return last;
  }

  /** The nodes of a stretch of text, with links, emphasis and code. */
  inline(start, end, depth = 0) {
    if (depth >= DEPTH_MAX) return this.words(start, end);
    const nodes = [];
    const part = this.text.slice(start, end);
    let at = 0;
    for (const found of part.matchAll(TOKEN)) {
      nodes.push(...this.words(start + at, start + found.index));
      nodes.push(...this.token(found, start, depth));
      at = found.index + found[0].length;
    }
    nodes.push(...this.words(start + at, end));
    return nodes;
  }

  token(found, start, depth) {
    const groups = found.groups;
    const within = (name, inner = depth + 1) => {
      const [a, b] = found.indices.groups[name];
      return this.inline(start + a, start + b, inner);
    };
    if (groups.escaped !== undefined) return within("escaped", DEPTH_MAX);
    if (groups.code !== undefined) return [h("code", {}, within("code", DEPTH_MAX))];
    if (groups.image !== undefined) {
      // Never loaded: a picture elsewhere would tell its host who reads what.
      return [h("span", { class: "picture" }, `picture: ${groups.alt || "without a description"} (${groups.image})`)];
    }
    if (groups.target !== undefined) return [outward(groups.target, within("label"))];
    if (groups.strong !== undefined) return [h("strong", {}, within("strong"))];
    if (groups.em !== undefined) return [h("em", {}, within("em"))];
    if (groups.under !== undefined) return [h("em", {}, within("under"))];
    return [outward(groups.bare.replace(/[.,;:!?'*_]+$/, ""), within("bare", DEPTH_MAX))];
  }
}

const ITEM = /^(\s{0,12})([-*+]|\d{1,9}[.)])\s+/;
// What ends a paragraph.
const OPENS = /^\s*$|\f|^\s{0,3}(#{1,6}\s|>|```|~~~)|^\s{0,3}([-*+]|\d{1,9}[.)])\s|^\s*\|/;
