"""`kb search`: find passages by words and by meaning."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, get_args

import click
import msgspec

from cli import asked
from cli.filters import which_docs
from cli.hits import print_hits
from cli.output import many, print_json, warn
from cli.words import text
from kb.errors import ItemsFailed, UsageError
from kb.model.asking import SearchAsked
from kb.model.search import NOTHING_HERE, SearchMode, SearchResult

if TYPE_CHECKING:
    from kb.home.spaces.reader import Reader

_EMPTY = f"{NOTHING_HERE}; add some with: kb add --recursive FOLDER"

_WEAK = "nothing here fits the query; these passages are merely the nearest"


@click.command(name="search")
@click.argument("query", required=False, type=text)
@click.option(
    "-k", "k", type=click.IntRange(1, 10_000), default=10, show_default=True, help="Hits."
)
@click.option(
    "--mode",
    type=click.Choice(get_args(SearchMode)),
    default="hybrid",
    show_default=True,
    help="By words and meaning, or one of them.",
)
@which_docs
@click.option("--with-neighbors", is_flag=True, help="Then the docs that packs link the hits to.")
@click.option(
    "--require-entity",
    "require",
    type=text,
    multiple=True,
    metavar="E",
    help="Only passages that mention it: a #tag, @name, address or link.",
)
@click.option(
    "--boost-entity",
    "boost",
    type=text,
    multiple=True,
    metavar="E",
    help="Prefer passages that mention it.",
)
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="S",
    help="Leave out what scores less; 0.5 gives silence where nothing fits.",
)
@click.option("--max-tokens", type=click.IntRange(1), help="Fill so many tokens with passages.")
@click.option("--explain", is_flag=True, help="Say how each score came about.")
@click.option(
    "--batch", type=click.Path(), metavar="FILE", help='Lines of {"_id","text"}; - for stdin.'
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, /, query: str | None, as_json: bool, **options: Any) -> None:
    """Find passages by words and by meaning."""
    if (query is None) == (options["batch"] is None):
        raise UsageError("give either a QUERY or --batch FILE")
    request = _request(query or "", options, with_marks=not as_json)
    if options["batch"] is not None:
        _run_batch(asked.reader_of(ctx), request, options["batch"])
        return
    found, has_several = asked.search(ctx, request)
    result = _told(found.result)
    if as_json:
        print_json(result)
        return
    print_hits(
        result,
        found.marks,
        whole=options["max_tokens"] is not None,
        with_space=has_several,
    )
    _warn(result)


def _told(result: SearchResult) -> SearchResult:
    warnings = tuple(_EMPTY if one == NOTHING_HERE else one for one in result.warnings)
    return msgspec.structs.replace(result, warnings=warnings)


def _request(query: str, options: dict[str, Any], *, with_marks: bool) -> SearchAsked:
    return SearchAsked(
        query=query,
        k=options["k"],
        mode=options["mode"],
        tags=options["tags"],
        kinds=options["kinds"],
        doc_ids=options["doc_ids"],
        packs=options["packs"],
        sources=options["sources"],
        with_neighbors=options["with_neighbors"],
        require_entities=options["require"],
        boost_entities=options["boost"],
        min_score=options["min_score"],
        max_tokens=options["max_tokens"],
        explain=options["explain"],
        with_marks=with_marks and options["batch"] is None,
    )


def _run_batch(reader: "Reader", request: SearchAsked, name: str) -> None:
    """One result a line, in the order of the lines; a bad line gives an error line and exit 3."""
    bad = 0
    with contextlib.ExitStack() as stack:
        lines = sys.stdin if name == "-" else stack.enter_context(_opened(name))
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            answer = _answer(reader, request, line)
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


def _answer(reader: "Reader", request: SearchAsked, line: str) -> dict[str, Any] | None:
    try:
        asked = msgspec.json.decode(line)
        ident, text = asked["_id"], asked["text"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return None
    if not isinstance(text, str):
        return None
    found = reader.search(msgspec.structs.replace(request, query=text))
    return {"_id": ident, **msgspec.to_builtins(_told(found.result))}


def _warn(result: SearchResult) -> None:
    for warning in result.warnings:
        warn(warning)
    if result.truncated:
        warn(result.truncated)
    if result.hits and all(hit.weak for hit in result.hits):
        warn(_WEAK)
    if not result.hits and _EMPTY not in result.warnings:
        warn("nothing found")
