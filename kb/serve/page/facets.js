// What a search can be narrowed to: the spaces, kinds, tags, packs, places and versions that there are.

import { get } from "./api.js";

const KEPT_MS = 30_000;
const ROWS = 200;
let kept = null;
let keptMs = -Infinity;

/** Spaces, the server's own first; kinds, tags, packs, places and versions, each sorted; of docs the most common ones, counted. */
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
  const [found, packs] = await Promise.all([get("/v1/facets", { limit: ROWS }), get("/v1/packs", { limit: ROWS })]);
  return {
    spaces: found.spaces,
    kinds: found.kinds,
    tags: found.tags,
    packs: packs.packs.map((pack) => ({ value: pack.selector ?? pack.pack_id })),
    sources: found.sources,
    versions: found.versions,
  };
}
