// Texts: their offsets, the part of them to show, and numbers and times in words.

/** Maps offsets in characters, as the server counts them, to those of a string here. */
export function offsets(text) {
  if (!/[\ud800-\udbff]/.test(text)) return (count) => Math.min(count, text.length);
  const wide = [];
  let count = 0;
  for (let i = 0; i < text.length; i += 1, count += 1) {
    const code = text.charCodeAt(i);
    if (code >= 0xd800 && code < 0xdc00) {
      wide.push(count);
      i += 1;
    }
  }
  return (wanted) => {
    let low = 0;
    let high = wide.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (wide[middle] < wanted) low = middle + 1;
      else high = middle;
    }
    return Math.min(wanted + low, text.length);
  };
}

/** The headings of a path without the title, which a long heading says up to an ellipsis. */
export function headingsUnder(title, heading) {
  const words = title.trim().replace(/\s+/g, " ");
  return heading.filter((part) => part !== title && !(part.endsWith("…") && words.startsWith(part.slice(0, -1))));
}

/** A stretch of a text as nodes, with the marked spans in `mark` elements. */
export function marked(text, start, end, spans, made = () => document.createElement("mark")) {
  const nodes = [];
  let at = start;
  for (const [from, to] of spans) {
    const a = Math.max(from, at);
    const b = Math.min(to, end);
    if (b <= a) continue;
    if (a > at) nodes.push(document.createTextNode(text.slice(at, a)));
    const node = made();
    node.textContent = text.slice(a, b);
    nodes.push(node);
    at = b;
  }
  if (at < end) nodes.push(document.createTextNode(text.slice(at, end)));
  return nodes;
}

/** The part of a passage, about `size` long, that has the most of the spans: [start, end]. */
export function windowOf(text, spans, size) {
  if (text.length <= size) return [0, text.length];
  let best = 0;
  let most = -1;
  for (const [start] of spans) {
    const kinds = new Set(spans.filter(([a, b]) => a >= start && b <= start + size * 0.8).map(([a, b]) => text.slice(a, b).toLowerCase()));
    if (kinds.size > most) {
      most = kinds.size;
      best = start;
    }
  }
  let from = Math.max(0, Math.min(best - Math.round(size * 0.2), text.length - size));
  if (from > 0) {
    const space = text.slice(from, from + 40).search(/\s/);
    if (space >= 0) from += space + 1;
  }
  let to = Math.min(text.length, from + size);
  if (to < text.length) {
    const space = text.slice(to - 40, to).search(/\s\S*$/);
    if (space > 0) to += space - 40;
  }
  return [from, to];
}

const UNITS = [["year", 31_536_000], ["month", 2_592_000], ["week", 604_800], ["day", 86_400], ["hour", 3_600], ["minute", 60]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** A moment, told from now. */
export function ago(ms, nowMs) {
  if (ms === null || ms === undefined) return "never";
  const seconds = (ms - nowMs) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.round(seconds / size), unit);
  }
  return "just now";
}

/** A length of time, to the unit that says it best. */
export function spell(seconds) {
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ["second", 1];
  return many(Math.round(seconds / size), unit);
}

export function many(count, one, several = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : several}`;
}

export function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = count;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${size < 10 && unit ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** The end of a place that tells it from others: the file's name and the folder's. */
export function shortPlace(source) {
  if (source === "-") return "a text";
  if (/^https?:/.test(source)) return source.replace(/^https?:\/\//, "");
  return source.split("/").slice(-2).join("/");
}

/** Where in its source something stands, in words; null where nothing says. */
export function spot({ page, line, locator }) {
  if (locator) return locator;
  if (page) return `page ${page}`;
  return line ? `line ${line}` : null;
}
