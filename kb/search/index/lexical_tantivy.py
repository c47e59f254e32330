"""A wrapper of tantivy: opens, writes and searches an index, and translates errors."""

import errno
import functools
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from kb.errors import KbError
from kb.model.code import is_code
from kb.model.doc import Audience, Doc
from kb.model.failpoints import failpoint
from kb.model.file_kinds import is_named
from kb.model.source import name_and_folders, names_of
from kb.model.text import Chunk, indexed_text
from kb.search.index import log_follower
from kb.search.index.analysis import (
    analyzer,
    exactly,
    han_characters,
    name_keys,
    normalize,
)
from kb.search.index.files import CacheDamaged
from kb.search.index.hits import IndexHits
from kb.search.index.idf import TermFrequencies
from kb.store.store import Store

if TYPE_CHECKING:
    from tantivy import DocAddress, Document, Index, IndexWriter, Query, Schema, Searcher

_LOCK: Final = ".tantivy-meta.lock"
_HEAP_BYTES: Final = 48_000_000
_TOKENIZER: Final = "kb"
_SPELLED_TOKENIZER: Final = "kb_spelled"
_FETCH_SPARE: Final = 64
_FETCH_GROWTH: Final = 4
_DEFINED_MAX: Final = 256
_TERMS_KEPT: Final = 512
# At most so many hits are fetched to complete the ties at the limit.
_TIES_FETCHED_MAX: Final = 20_000
# Scores that differ by less, relative to the higher one, are ties: tantivy adds up the terms of a
# query in an order that depends on its segments, and so does the rounding.
_TIE_TOLERANCE: Final = 1e-5
_SYSTEM_ERRNOS: Final = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM)
)


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn all errors of tantivy, including panics, into CacheDamaged.

    An OSError of the system (no space, no permission) passes: a rebuild would not help.
    """
    try:
        yield
    except (CacheDamaged, KbError):
        raise
    except OSError as error:
        if error.errno in _SYSTEM_ERRNOS:
            raise
        raise CacheDamaged(str(error)) from error
    except Exception as error:
        # tantivy raises several classes.
        raise CacheDamaged(str(error)) from error
    except BaseException as error:
        # A panic in Rust is no Exception in Python.
        if type(error).__name__ != "PanicException":
            raise
        raise CacheDamaged(str(error)) from error


def build_schema() -> "Schema":
    """Fields: title, body (title, heading path, text), han (single characters), two numbers.

    `spelled` has the words of the body unstemmed, with their places for phrases; of Han, bigrams,
    which a dictionary of another language cannot cut wrongly.

    The name of the doc's file and its folders are fields of their own. `called` has the keys of all
    names that the doc goes by, at its first chunk only, and `defines` those of what a
    chunk of source code defines.
    """
    from tantivy import SchemaBuilder

    builder = SchemaBuilder()
    for field in ("title", "body", "name", "folders"):
        builder.add_text_field(field, tokenizer_name=_TOKENIZER, index_option="freq")
    builder.add_text_field("spelled", tokenizer_name=_SPELLED_TOKENIZER, index_option="position")
    builder.add_text_field("called", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("defines", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("han", tokenizer_name="whitespace", index_option="position")
    builder.add_unsigned_field("no", indexed=True, fast=True)
    builder.add_unsigned_field("source_no", indexed=True, fast=True)
    return builder.build()


def create_index(path: Path | None) -> "Index":
    """An empty index in an empty folder, or in memory."""
    from tantivy import Index

    return _configure(Index(build_schema(), path=str(path)) if path else Index(build_schema()))


def open_index(path: Path) -> "Index":
    """Open the index in a folder, also where nothing can be written. Raises CacheDamaged."""
    from tantivy import Index

    with engine_errors():
        try:
            return _configure(Index.open(str(path)))
        except ValueError:
            if os.access(path / _LOCK, os.W_OK):
                raise
        return _open_by_links(path)


def _open_by_links(path: Path) -> "Index":
    """The index in a folder that cannot be written, where tantivy would take its lock."""
    import tempfile

    from tantivy import Index

    try:
        with tempfile.TemporaryDirectory(prefix="kb-index-") as folder:
            for file in path.iterdir():
                if file.name != _LOCK:
                    os.symlink(file, os.path.join(folder, file.name))
            return _configure(Index.open(folder))
    except OSError as error:
        raise CacheDamaged(str(error)) from error


def _configure(index: "Index") -> "Index":
    # Otherwise a thread would watch the folder; here the manifest tells of changes.
    index.config_reader("manual")
    index.register_tokenizer(_TOKENIZER, analyzer())
    index.register_tokenizer(_SPELLED_TOKENIZER, analyzer(stems=False))
    return index


class IndexingStopped(CacheDamaged):
    """The caller stopped the indexing, so the index is not complete."""


def always() -> bool:
    """True: nobody stops the work."""
    return True


def write_chunks(
    index: "Index",
    store: Store,
    nos: list[int],
    audience: Audience,
    *,
    replace: bool,
    should_continue: Callable[[], bool] = always,
) -> int:
    """Index the live chunks of an audience among these, in one commit; returns their number.

    With `replace` the old rows of all these chunks are deleted. Without any change nothing is
    committed, because a commit may merge segments, and changes of other audiences' docs must not
    change scores. On return no merge is running. Calls `should_continue` every thousand chunks and
    raises IndexingStopped, with nothing committed, once it returns False.
    """
    writer = None if replace else index.writer(_HEAP_BYTES, 1)
    added = 0
    for _, window in log_follower.read_windows(store, nos):
        if not should_continue():
            raise IndexingStopped("stopped")
        rows = [pair for _, pair in window if pair and pair[1].audience == audience]
        window_nos = [no for no, _ in window]
        if replace and not rows and not _has_any(index, window_nos):
            continue
        writer = writer or index.writer(_HEAP_BYTES, 1)
        if replace:
            _delete(index, writer, window_nos)
        for chunk, doc in rows:
            writer.add_document(_document(chunk, doc))
        added += len(rows)
    if writer is None:
        return 0
    failpoint("lexical.before_commit")
    writer.commit()
    writer.wait_merging_threads()
    failpoint("lexical.after_commit")
    index.reload()
    return added


def has_live_term(index: "Index", searcher: "Searcher", field: str, term: str) -> bool:
    """Whether a live chunk contains a term; `doc_freq` also counts dead ones."""
    from tantivy import Query

    return bool(searcher.search(Query.term_query(index.schema, field, term), 1, count=False).hits)


def term_frequencies(
    index: "Index", searcher: "Searcher", dead_rows: int
) -> TermFrequencies | None:
    """The term frequencies; None for an empty index. Its functions may raise CacheDamaged."""
    with engine_errors():
        rows = searcher.num_docs
    if not rows:
        return None

    # One search asks for the same terms several times, and other searches for some of them, too.
    @functools.lru_cache(_TERMS_KEPT)
    def doc_freq(field: str, term: str) -> int:
        with engine_errors():
            return searcher.doc_freq(field, term)

    @functools.lru_cache(_TERMS_KEPT)
    def has_term(field: str, term: str) -> bool:
        holding = doc_freq(field, term)
        if not holding or holding > dead_rows:
            return bool(holding)
        with engine_errors():
            return has_live_term(index, searcher, field, term)

    return TermFrequencies(rows=rows + dead_rows, doc_freq=doc_freq, has_term=has_term)


def holders(
    searcher: "Searcher", query: "Query", field: str, limit: int | None = None
) -> frozenset[int]:
    """The numbers in `field` of all chunks that a query matches, or of `limit` of them."""
    from tantivy import Query

    most = searcher.num_docs if limit is None else limit
    found = searcher.search(Query.const_score_query(query, 0.0), max(1, most), count=False).hits
    return frozenset(_field_values(searcher, field, [address for _, address in found]))


def first_holders(searcher: "Searcher", query: "Query", count: int) -> list[int]:
    """The lowest `count` numbers of the chunks that a query matches, ascending."""
    from tantivy import Order

    found = searcher.search(query, count, count=False, order_by_field="no", order=Order.Asc)
    return [cast("int", no) for no, _ in found.hits]


def all_rows(searcher: "Searcher") -> dict[int, int]:
    """The source of each chunk, by number, of all live rows."""
    from tantivy import Query

    query = Query.const_score_query(Query.all_query(), 0.0)
    found = searcher.search(query, max(1, searcher.num_docs), count=False).hits
    addresses = [address for _, address in found]
    nos = _field_values(searcher, "no", addresses)
    return dict(zip(nos, _field_values(searcher, "source_no", addresses), strict=True))


def _has_any(index: "Index", nos: list[int]) -> bool:
    from tantivy import Query

    query = Query.term_set_query(index.schema, "no", nos)
    return bool(index.searcher().search(query, 1, count=False).hits)


def _delete(index: "Index", writer: "IndexWriter", nos: list[int]) -> None:
    from tantivy import Query

    # By query, not by term: an int term matches nothing in an unsigned field.
    writer.delete_documents_by_query(Query.term_set_query(index.schema, "no", nos))


def _document(chunk: Chunk, doc: Doc) -> "Document":
    from tantivy import Document

    body = indexed_text(doc.label, chunk.heading, chunk.text)
    document = Document()
    han = han_characters(body)
    name, folders = name_and_folders(doc.source)
    if doc.by_name:
        # It says nothing, so it comes after every text that says a word of the query.
        document.add_text("folders", normalize(f"{folders}\n{name}\n{body}"))
    else:
        document.add_text("title", normalize(doc.label))
        words = normalize(body)
        document.add_text("body", words)
        document.add_text("spelled", normalize(body, han_words=False) if han else words)
        document.add_text("name", normalize(name))
        document.add_text("folders", normalize(folders))
    if chunk.ordinal == 0:
        # Of pictures and films numbers are what people copy (`IMG_1234`); bare words are a search.
        stem = (name,) if is_named(doc.mime) and any(map(str.isdigit, name)) else ()
        for key in sorted(frozenset().union(*map(name_keys, (*names_of(doc), *stem)))):
            document.add_text("called", key)
    if is_code(doc.mime):
        names = sorted(_defined_names(chunk, doc))[:_DEFINED_MAX]
        for key in sorted(frozenset().union(*map(name_keys, names))):
            document.add_text("defines", key)
        for name in names:
            document.add_text("defines", exactly(name))
    if han and not doc.by_name:
        document.add_text("han", han)
    document.add_unsigned("no", chunk.no)
    document.add_unsigned("source_no", chunk.source_no)
    return document


def _defined_names(chunk: Chunk, doc: Doc) -> frozenset[str]:
    """What the chunk of a doc of source code defines."""
    if not doc.definitions:
        from kb.intake.chunker.definitions import defined_names

        return defined_names(chunk.text)
    low, high = (
        bisect_left(doc.definitions, place, key=lambda definition: definition.name)
        for place in (chunk.start, chunk.end)
    )
    return frozenset(
        chunk.text[place.name - chunk.start : place.name_end - chunk.start]
        for place in doc.definitions[low:high]
    )


def best_hits(
    searcher: "Searcher", query: "Query", limit: int, filters: dict[str, frozenset[int]]
) -> IndexHits:
    """The best `limit` hits whose number fields have one of the filters' values.

    tantivy orders ties by their position in the index, which depends on its history. So all ties at
    the limit are fetched, and `rank_rows` orders them by number.
    """
    fetch = limit + _FETCH_SPARE
    while True:
        fetched = searcher.search(query, fetch, count=False).hits
        rows = _filtered(searcher, fetched, filters)
        is_exhausted = len(fetched) < fetch
        is_enough = len(rows) >= limit
        has_all_ties = is_enough and not _is_tied(rows[limit - 1][0], fetched[-1][0])
        if is_exhausted or has_all_ties or (is_enough and fetch >= _TIES_FETCHED_MAX):
            break
        fetch *= _FETCH_GROWTH
    return rank_rows(rows, limit)


def rank_rows(rows: list[tuple[float, int]], limit: int) -> IndexHits:
    """The best `limit` rows of (score, number), ties ordered by number. Pure.

    Scores that differ only by rounding are ties, and get the highest score among them.
    """
    ordered: list[tuple[float, int]] = []
    top = tied_min = 0.0
    for score, no in sorted(rows, reverse=True):
        # As `_is_tied`, written out for some hundred rows of each search.
        if not ordered or score < tied_min:
            top, tied_min = score, score * (1 - _TIE_TOLERANCE)
        ordered.append((-top, no))
    ordered.sort()
    best_rows = ordered[: max(limit, 0)]
    return IndexHits(nos=[no for _, no in best_rows], scores=[-score for score, _ in best_rows])


def _is_tied(higher: float, score: float) -> bool:
    return score >= higher * (1 - _TIE_TOLERANCE)


def _filtered(
    searcher: "Searcher",
    hits: "list[tuple[float, DocAddress]]",
    filters: dict[str, frozenset[int]],
) -> list[tuple[float, int]]:
    addresses = [address for _, address in hits]
    nos = _field_values(searcher, "no", addresses)
    rows = [(score, no) for (score, _), no in zip(hits, nos, strict=True)]
    for field, values in filters.items():
        numbers = nos if field == "no" else _field_values(searcher, field, addresses)
        passing = {no for no, number in zip(nos, numbers, strict=True) if number in values}
        rows = [row for row in rows if row[1] in passing]
    return rows


def _field_values(searcher: "Searcher", field: str, addresses: "list[DocAddress]") -> list[int]:
    return cast("list[int]", searcher.fast_field_values(field, addresses))
