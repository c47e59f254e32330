// Drawings: how documents link, and plain plots. The same data gives the same drawing.

import { h, svg } from "./dom.js";

const STEPS = 240;
const SIZE = 600;
const MARGIN = 56;
const LABEL_CHARS = 22;

/** Where nodes stand after a fixed number of steps: linked ones near, others apart. */
export function layout(count, links) {
  const place = Array.from({ length: count }, (_, i) => {
    const turn = (2 * Math.PI * i) / Math.max(1, count);
    return [Math.cos(turn), Math.sin(turn)];
  });
  const ideal = 1.6 / Math.sqrt(Math.max(1, count));
  for (let step = 0; step < STEPS; step += 1) {
    const heat = 0.12 * (1 - step / STEPS);
    const push = place.map(([x, y]) => [-x * 0.15, -y * 0.15]);
    for (let i = 0; i < count; i += 1) {
      for (let j = i + 1; j < count; j += 1) {
        const dx = place[i][0] - place[j][0];
        const dy = place[i][1] - place[j][1];
        const square = Math.max(dx * dx + dy * dy, 1e-4);
        const force = (ideal * ideal) / square;
        push[i][0] += dx * force;
        push[i][1] += dy * force;
        push[j][0] -= dx * force;
        push[j][1] -= dy * force;
      }
    }
    for (const [from, to] of links) {
      const dx = place[to][0] - place[from][0];
      const dy = place[to][1] - place[from][1];
      const force = Math.hypot(dx, dy) / ideal / 3;
      push[from][0] += dx * force;
      push[from][1] += dy * force;
      push[to][0] -= dx * force;
      push[to][1] -= dy * force;
    }
    place.forEach((at, i) => {
      const length = Math.hypot(...push[i]) || 1;
      const much = Math.min(length, heat) / length;
      at[0] += push[i][0] * much;
      at[1] += push[i][1] * much;
    });
  }
  return fitted(place);
}

function fitted(place) {
  if (!place.length) return [];
  const of = (axis, pick) => pick(...place.map((at) => at[axis]));
  const low = [of(0, Math.min), of(1, Math.min)];
  const wide = [of(0, Math.max) - low[0] || 1, of(1, Math.max) - low[1] || 1];
  return place.map((at) => [0, 1].map((axis) => MARGIN + ((at[axis] - low[axis]) / wide[axis]) * (SIZE - 2 * MARGIN)));
}

/** Nodes ({label, href, isHere}) and links ([from, to, type], numbers of nodes) as a drawing. */
export function graph(nodes, links, title) {
  const at = layout(nodes.length, links);
  const round = (value) => value.toFixed(1);
  const lines = links.map(([from, to, type]) => {
    const [x1, y1] = at[from];
    const [x2, y2] = at[to];
    const long = Math.hypot(x2 - x1, y2 - y1) || 1;
    const end = [x2 - ((x2 - x1) / long) * 11, y2 - ((y2 - y1) / long) * 11];
    return svg("line", { class: "link", x1: round(x1), y1: round(y1), x2: round(end[0]), y2: round(end[1]), "marker-end": "url(#arrow)" }, svg("title", {}, `${nodes[from].label} ${type.replaceAll("_", " ")} ${nodes[to].label}`));
  });
  const dots = nodes.map((node, i) => {
    const [x, y] = at[i].map(round);
    const label = node.label.length > LABEL_CHARS ? `${node.label.slice(0, LABEL_CHARS - 1)}…` : node.label;
    return svg("a", { href: node.href, class: node.isHere ? "node here" : "node", "aria-label": node.label },
      svg("title", {}, node.label), svg("circle", { cx: x, cy: y, r: node.isHere ? 9 : 7 }),
      svg("text", { x, y: Number(y) + 25, "text-anchor": "middle" }, label));
  });
  const arrow = svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8z" }));
  return h("figure", { class: "graph" },
    svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": title }, svg("defs", {}, arrow), lines, dots));
}

/** Bars, one to a row: [label, value, text]. */
export function bars(title, rows) {
  const most = Math.max(1, ...rows.map(([, value]) => value));
  const tall = 26;
  return h("figure", { class: "plot" }, h("figcaption", {}, title),
    h("dl", { class: "unseen" }, rows.flatMap(([label, value, text]) => [h("dt", {}, label), h("dd", {}, text ?? String(value))])),
    svg("svg", { viewBox: `0 0 300 ${rows.length * tall}`, "aria-hidden": "true" }, rows.map(([label, value, text], i) => [
      svg("text", { x: 112, y: i * tall + 17, "text-anchor": "end" }, label),
      svg("rect", { x: 120, y: i * tall + 5, width: ((value / most) * 118).toFixed(1), height: 16, rx: 3 }),
      svg("text", { x: 126 + (value / most) * 118, y: i * tall + 17, class: "value" }, text ?? value.toLocaleString("en")),
    ]).flat()));
}

/** Columns over time: [label, value], the oldest first. */
export function columns(title, rows) {
  const most = Math.max(1, ...rows.map(([, value]) => value));
  const step = 300 / Math.max(1, rows.length);
  return h("figure", { class: "plot" }, h("figcaption", {}, title),
    svg("svg", { viewBox: "0 0 300 120", role: "img", "aria-label": `${title}: ${rows.map(([label, value]) => `${label} ${value}`).join(", ")}` },
      rows.map(([label, value], i) => [
        svg("rect", { x: (i * step + step * 0.15).toFixed(1), y: (96 - (value / most) * 84).toFixed(1), width: (step * 0.7).toFixed(1), height: Math.max(1, (value / most) * 84).toFixed(1), rx: 2 }, svg("title", {}, `${label}: ${value}`)),
        i % Math.ceil(rows.length / 6) === 0 ? svg("text", { x: (i * step + step / 2).toFixed(1), y: 114, "text-anchor": "middle" }, label) : "",
      ]).flat()));
}
