"""tantivy, as far as we need it: open, write, search; its errors come out as ours."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from kb.errors import KbError
from kb.model.doc import Audience, Doc
from kb.model.failpoints import failpoint
from kb.model.text import Chunk, indexed_text
from kb.search.index import follow
from kb.search.index.files import CacheDamaged
from kb.search.index.result import Hits
from kb.search.index.words import analyzer, han_characters, prepare
from kb.store.store import Store

if TYPE_CHECKING:
    from tantivy import DocAddress, Document, Index, IndexWriter, Query, Schema, Searcher

_HEAP_BYTES: Final = 48_000_000
_TOKENIZER: Final = "kb"
_FETCH_SPARE: Final = 64
_FETCH_GROWTH: Final = 4
# Ties are followed past the limit no further than this.
_TIED_MAX: Final = 20_000
# Scores as near as this, relative to the higher one, are one score: tantivy adds up the words of a
# query in an order that depends on its segments, and single precision shows it.
_TIED: Final = 1e-5
_FROM_THE_SYSTEM: Final = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM)
)


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn whatever tantivy raises, its panics too, into CacheDamaged.

    An OSError of the system's own (no room, no right) passes: a rebuild would not help it.
    """
    try:
        yield
    except (CacheDamaged, KbError):
        raise
    except OSError as error:
        if error.errno in _FROM_THE_SYSTEM:
            raise
        raise CacheDamaged(str(error)) from error
    except Exception as error:
        # tantivy maps its errors to several classes.
        raise CacheDamaged(str(error)) from error
    except BaseException as error:
        # A panic in Rust is no Exception in Python.
        if type(error).__name__ != "PanicException":
            raise
        raise CacheDamaged(str(error)) from error


def schema() -> "Schema":
    """Fields: title, body (that, heading path, passage), han (single characters), two numbers."""
    from tantivy import SchemaBuilder

    builder = SchemaBuilder()
    builder.add_text_field("title", tokenizer_name=_TOKENIZER, index_option="position")
    builder.add_text_field("body", tokenizer_name=_TOKENIZER, index_option="position")
    builder.add_text_field("han", tokenizer_name="whitespace", index_option="position")
    builder.add_unsigned_field("no", indexed=True, fast=True)
    builder.add_unsigned_field("source_no", indexed=True, fast=True)
    return builder.build()


def create_index(path: Path | None) -> "Index":
    """An empty index in an empty folder, or in memory."""
    from tantivy import Index

    return _prepared(Index(schema(), path=str(path)) if path else Index(schema()))


def open_index(path: Path) -> "Index":
    """The index that lies in a folder. Raises CacheDamaged."""
    from tantivy import Index

    with engine_errors():
        return _prepared(Index.open(str(path)))


def _prepared(index: "Index") -> "Index":
    # Without this a thread would watch the folder; we are told by the manifest.
    index.config_reader("manual")
    index.register_tokenizer(_TOKENIZER, analyzer())
    return index


class Stopped(CacheDamaged):
    """An index is not whole, for whoever asked for it has stopped the work."""


def on_and_on() -> bool:
    """Nobody stops the work."""
    return True


def write_passages(
    index: "Index",
    store: Store,
    nos: list[int],
    audience: Audience,
    *,
    replace: bool,
    goes_on: Callable[[], bool] = on_and_on,
) -> int:
    """Index what is live of these passages for an audience, in one commit; returns how many.

    With `replace` the rest is forgotten, and where nothing of it was there to forget, nothing is
    committed: a commit may merge segments, and so would shift scores for what others changed.
    On return no merge is under way and nothing more will be written. Raises Stopped, with nothing
    committed, once `goes_on`, which is asked every thousand passages, says no.
    """
    writer = None if replace else index.writer(_HEAP_BYTES, 1)
    added = 0
    for _, window in follow.windows(store, nos):
        if not goes_on():
            raise Stopped("stopped")
        theirs = [found for _, found in window if found and found[1].audience == audience]
        touched = [no for no, _ in window]
        if replace and not theirs and not _holds_any(index, touched):
            continue
        writer = writer or index.writer(_HEAP_BYTES, 1)
        if replace:
            _delete(index, writer, touched)
        for found in theirs:
            writer.add_document(_document(*found))
        added += len(theirs)
    if writer is None:
        return 0
    failpoint("lexical.before_commit")
    writer.commit()
    writer.wait_merging_threads()
    failpoint("lexical.after_commit")
    index.reload()
    return added


def holds_term(index: "Index", searcher: "Searcher", field: str, term: str) -> bool:
    """Whether a live passage holds a term; `doc_freq` counts the dead ones, too."""
    from tantivy import Query

    if not searcher.doc_freq(field, term):
        return False
    return bool(searcher.search(Query.term_query(index.schema, field, term), 1, count=False).hits)


def _holds_any(index: "Index", nos: list[int]) -> bool:
    from tantivy import Query

    among = Query.term_set_query(index.schema, "no", nos)
    return bool(index.searcher().search(among, 1, count=False).hits)


def _delete(index: "Index", writer: "IndexWriter", nos: list[int]) -> None:
    from tantivy import Query

    # By query, not by term: a term made from an int matches nothing in an unsigned field.
    writer.delete_documents_by_query(Query.term_set_query(index.schema, "no", nos))


def _document(chunk: Chunk, doc: Doc) -> "Document":
    from tantivy import Document

    body = indexed_text(doc.label, chunk.heading, chunk.text)
    document = Document()
    document.add_text("title", prepare(doc.label))
    document.add_text("body", prepare(body))
    han = han_characters(body)
    if han:
        document.add_text("han", han)
    document.add_unsigned("no", chunk.no)
    document.add_unsigned("source_no", chunk.source_no)
    return document


def best(
    searcher: "Searcher", query: "Query", limit: int, filters: dict[str, frozenset[int]]
) -> Hits:
    """The best `limit` hits whose number fields are among the filters' values.

    tantivy orders equal scores by place in the index, which differs with its history; so ties at
    the limit are fetched whole and cut by number, as `ranked` does.
    """
    fetch = limit + _FETCH_SPARE
    while True:
        found = searcher.search(query, fetch, count=False).hits
        kept = _filtered(searcher, found, filters)
        exhausted = len(found) < fetch
        enough = len(kept) >= limit
        settled = enough and not _is_tied(kept[limit - 1][0], found[-1][0])
        if exhausted or settled or (enough and fetch >= _TIED_MAX):
            break
        fetch *= _FETCH_GROWTH
    return ranked(kept, limit)


def ranked(rows: list[tuple[float, int]], limit: int) -> Hits:
    """The best `limit` of scores with their numbers, ties by number. Pure.

    What differs only by how single precision was added up gets the highest score among it.
    """
    ordered: list[tuple[float, int]] = []
    top = 0.0
    for score, no in sorted(rows, reverse=True):
        if not ordered or not _is_tied(top, score):
            top = score
        ordered.append((-top, no))
    ordered.sort()
    best_rows = ordered[: max(limit, 0)]
    return Hits(nos=[no for _, no in best_rows], scores=[-score for score, _ in best_rows])


def _is_tied(higher: float, score: float) -> bool:
    return score >= higher * (1 - _TIED)


def _filtered(
    searcher: "Searcher",
    found: "list[tuple[float, DocAddress]]",
    filters: dict[str, frozenset[int]],
) -> list[tuple[float, int]]:
    addresses = [address for _, address in found]
    nos = _numbers(searcher, "no", addresses)
    rows = [(score, no) for (score, _), no in zip(found, nos, strict=True)]
    for field, values in filters.items():
        numbers = nos if field == "no" else _numbers(searcher, field, addresses)
        passing = {no for no, number in zip(nos, numbers, strict=True) if number in values}
        rows = [row for row in rows if row[1] in passing]
    return rows


def _numbers(searcher: "Searcher", field: str, addresses: "list[DocAddress]") -> list[int]:
    return cast("list[int]", searcher.fast_field_values(field, addresses))
