"""`kb search`: find passages by words and by meaning."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import click
import msgspec

from kb.errors import ItemsFailed, UsageError
from kb.operations.search import NOTHING_HERE, SEARCH, SearchResult, ShownSearch
from kb_cli.answering import answer as answer_of
from kb_cli.answering import asker
from kb_cli.filters import NO_DOCS, from_here, which_docs
from kb_cli.hits import print_hits
from kb_cli.options import request_of, request_options
from kb_cli.output import many, print_json, warn
from kb_cli.words import text

_WEAK = "nothing here fits the query; these passages are merely the nearest"


@click.command(name="search")
@click.argument("words", nargs=-1, metavar="[QUERY]...", type=text)
@request_options(ShownSearch, "k", "offset", "cursor", "mode")
@which_docs
@request_options(
    ShownSearch,
    "with_neighbors",
    "require_entities",
    "boost_entities",
    "min_score",
    "max_tokens",
    "sort",
    "verbatim",
    "rerank",
    "explain",
    "at_least",
    metavars={"require_entities": "E", "boost_entities": "E", "min_score": "S"},
)
@click.option(
    "--batch", type=click.Path(), metavar="FILE", help='Lines of {"_id","text"}; - for stdin.'
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context, /, words: tuple[str, ...], batch: str | None, as_json: bool, **options: Any
) -> None:
    """Find passages by words and by meaning.

    All words are the query. In it tag:x, kind:x, source:x and title:x narrow, and -tag:x or -word
    leaves out. A word that begins with - needs quotes around the query, or -- before it.
    """
    if bool(words) == (batch is not None):
        raise UsageError(
            "say what to search for, as in: kb search boiler quote; or give --batch FILE"
        )
    marks = not as_json and batch is None
    request = request_of(ShownSearch, query=" ".join(words), marks=marks, **from_here(options))
    if batch is not None:
        _run_batch(ctx, request, batch)
        return
    answer, has_several = answer_of(ctx, SEARCH, request, by_socket=True)
    result = _with_advice(answer)
    if as_json:
        print_json(result)
        return
    print_hits(
        result,
        answer.marks,
        whole=request.max_tokens is not None,
        with_space=has_several,
    )
    _warn(result)


def _with_advice(result: SearchResult) -> SearchResult:
    warnings = tuple(NO_DOCS if warning == NOTHING_HERE else warning for warning in result.warnings)
    return msgspec.structs.replace(result, warnings=warnings)


def _run_batch(ctx: click.Context, request: ShownSearch, name: str) -> None:
    """One result a line, in the order of the lines; a bad line gives an error line and exit 3."""
    search = asker(ctx, SEARCH)
    bad = 0
    with contextlib.ExitStack() as stack:
        lines = sys.stdin if name == "-" else stack.enter_context(_opened(name))
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            answer = _answer(search, request, line)
            if answer is None:
                bad += 1
                detail = f'line {number} is not {{"_id": ..., "text": ...}}'
                answer = {"_id": None, "error": detail}
                warn(f"{name}: {detail}")
            print_json(answer)
    if bad:
        raise ItemsFailed(f"{many(bad, 'line')} could not be read")


def _opened(name: str) -> TextIO:
    try:
        return Path(name).open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from error


def _answer(
    search: Callable[[ShownSearch], SearchResult], request: ShownSearch, line: str
) -> dict[str, Any] | None:
    try:
        row = msgspec.json.decode(line)
        ident, query = row["_id"], row["text"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return None
    if not isinstance(query, str):
        return None
    result = search(msgspec.structs.replace(request, query=query))
    return {"_id": ident, **msgspec.to_builtins(_with_advice(result))}


def _warn(result: SearchResult) -> None:
    for warning in result.warnings:
        warn(warning)
    if result.truncated:
        warn(result.truncated)
    if result.hits and all(hit.weak for hit in result.hits):
        warn(_WEAK)
    if not result.hits and NO_DOCS not in result.warnings:
        warn("nothing found")
