"""Neighbours: docs that follow the hits because a pack links a hit's doc to them."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from kb.errors import NotFound, SourceError, UsageError
from kb.home.open_home import OpenHome
from kb.knowledge.packs import query
from kb.knowledge.packs.load import Pack
from kb.knowledge.packs.register import open_registered, resolve
from kb.model.doc import Doc, Scope
from kb.model.ids import DocId
from kb.model.search import Filters, Hit, SearchRequest, SearchResult, Via
from kb.model.source import member_lsid
from kb.operations.budget import estimate
from kb.search.filters import may_appear
from kb.search.hits import ScoredChunk, build_hits
from kb.store import chunks, docs
from kb.store.kv import ReadTxn

NEIGHBORS_MAX: Final = 5
# Of the lowest hit's score: what the best neighbour of the best hit has.
_SHARE: Final = 0.5
_DIGITS: Final = 6


class _Linked(Struct, frozen=True, kw_only=True):
    """A doc that a link leads to, and the link."""

    doc: Doc
    via: Via


def with_neighbors(
    home_of: Callable[[Hit], OpenHome],
    result: SearchResult,
    max_tokens: int | None,
    filters: Filters,
    scope: Scope,
) -> SearchResult:
    """The result, and after its hits the docs that their packs link them to, outbound.

    At most five for each hit, none twice and none that is a hit itself, each by its first chunk
    and scored below every hit, in the order of the hits and then of the links. What the scope may
    not see has no part in it. A neighbour passes the filters but for doc ids, as it matches nothing
    itself. `home_of` names the home that a hit is from.
    """
    if not result.hits:
        return result
    opened: dict[tuple[int, str], Pack | None] = {}
    warnings: list[str] = []
    doc_ids = {hit.doc_id for hit in result.hits}
    lowest, top = (choose(hit.score for hit in result.hits) for choose in (min, max))
    brought: list[Hit] = []
    for hit in result.hits:
        home = home_of(hit)
        here = home.scope(scope)
        with home.store.read() as txn:
            pack = _pack(txn, home, hit, here, opened, warnings)
            links = list(_links(txn, pack, hit, filters, here, doc_ids)) if pack else []
            doc_ids |= {link.doc.doc_id for link in links}
            score = round(lowest * _SHARE * (hit.score / top if top else 0.0), _DIGITS)
            brought += [_hit(txn, home, link, score, hit) for link in links]
    fitting, cut = _fitting(result, brought, max_tokens)
    hits = (*result.hits, *fitting)
    first = result.hits[0].rank
    return msgspec.structs.replace(
        result,
        hits=tuple(msgspec.structs.replace(hit, rank=n) for n, hit in enumerate(hits, first)),
        warnings=tuple(dict.fromkeys((*result.warnings, *warnings))),
        truncated="; ".join(filter(None, (result.truncated, cut))) or None,
    )


def _pack(
    txn: ReadTxn,
    home: OpenHome,
    hit: Hit,
    scope: Scope,
    opened: dict[tuple[int, str], Pack | None],
    warnings: list[str],
) -> Pack | None:
    """The pack of a hit's doc as it is now; None, perhaps with a warning, where nobody can tell."""
    if hit.pack is None:
        return None
    place = (id(home.store), hit.pack.pack_id)
    if place not in opened:
        opened[place] = None
        try:
            record = resolve(txn, hit.pack.pack_id, scope)
            opened[place] = open_registered(record, home.content.paths.root)
        except (SourceError, UsageError) as error:
            warnings.append(f"no neighbors of docs of a pack: {error}")
        except NotFound:
            # Hidden or gone: nothing is said of it.
            pass
    return opened[place]


def _links(
    txn: ReadTxn, pack: Pack, hit: Hit, filters: Filters, scope: Scope, doc_ids: set[DocId]
) -> Iterator[_Linked]:
    about = pack.find(hit.pack.selector) if hit.pack else None
    if about is None:
        return
    linked: set[DocId] = set()
    for edge in query.neighbors(pack, about.selector).edges:
        place = member_lsid("pack", pack.manifest.pack_id, edge.target.source_path)
        doc = docs.latest_of(txn, place)
        if doc is None or doc.doc_id in doc_ids | linked or not may_appear(doc, filters, scope):
            continue
        if chunks.at(txn, doc.source_no, 0) is None:
            continue
        linked.add(doc.doc_id)
        via = Via(doc_id=hit.doc_id, selector=about.selector, edge=edge.type)
        yield _Linked(doc=doc, via=via)
        if len(linked) == NEIGHBORS_MAX:
            return


def _hit(txn: ReadTxn, home: OpenHome, linked: _Linked, score: float, bringer: Hit) -> Hit:
    chunk = chunks.at(txn, linked.doc.source_no, 0)
    assert chunk is not None
    row = ScoredChunk(
        score=score,
        rank_score=score,
        chunk=chunk,
        doc=linked.doc,
        lexical_rank=None,
        dense_rank=None,
        fused=score,
        boost=1.0,
    )
    (hit,), _ = build_hits(txn, home.content, [row], SearchRequest(query=""), lambda _: None)
    return msgspec.structs.replace(hit, via=linked.via, source_space=bringer.source_space)


def _fitting(
    result: SearchResult, brought: list[Hit], max_tokens: int | None
) -> tuple[list[Hit], str | None]:
    """The first neighbours for which a budget has room, and what was left out."""
    if max_tokens is None:
        return brought, None
    room = max_tokens - sum(estimate(hit.text) for hit in result.hits)
    fitting: list[Hit] = []
    for hit in brought:
        room -= estimate(hit.text)
        if room < 0:
            break
        fitting.append(hit)
    left_out = len(brought) - len(fitting)
    remark = f"{left_out} of {len(brought)} neighbors left out: over {max_tokens} tokens"
    return fitting, remark if left_out else None
