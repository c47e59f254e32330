// What a search can be narrowed to: the kinds, tags, packs and places that there are.

import { get } from "./api.js";

const KEPT_MS = 30_000;
const ROWS = 200;
let kept = null;
let keptMs = -Infinity;

/** Kinds, tags, packs and places, each sorted; of the newest docs, which is enough to choose from. */
export function facets() {
  const nowMs = performance.now();
  if (!kept || nowMs - keptMs > KEPT_MS) {
    keptMs = nowMs;
    kept = read();
    kept.catch(forgetFacets);
  }
  return kept;
}

/** Read them anew the next time: something was added or removed. */
export function forgetFacets() {
  kept = null;
}

async function read() {
  const [list, packs] = await Promise.all([get("/v1/docs", { limit: ROWS, max_tokens: 100_000 }), get("/v1/packs", { limit: ROWS })]);
  const sorted = (values) => [...new Set(values)].sort((a, b) => a.localeCompare(b));
  return {
    kinds: sorted(list.docs.map((doc) => doc.kind)),
    tags: sorted(list.docs.flatMap((doc) => doc.tags)),
    packs: sorted(packs.packs.map((pack) => pack.selector ?? pack.pack_id)),
    sources: sorted(list.docs.flatMap((doc) => placeOf(doc.source))),
  };
}

/** The folder of a file, the site of a page; none of what came in by itself. */
function placeOf(source) {
  const site = /^https?:\/\/[^/]+/.exec(source);
  if (site) return [site[0]];
  const slash = source.lastIndexOf("/");
  return source.startsWith("/") && slash > 0 ? [source.slice(0, slash)] : [];
}
