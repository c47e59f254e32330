"""Hits as a person reads them."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from kb.operations.search import Hit, Mark, SearchResult, file_lsid, headings_under
from kb_cli.output import clean, link
from kb_cli.snippet import Row, flowed, snippet

_INDENT: Final = "    "
_DAY_CHARS: Final = len("2026-11-22")
_WIDTH_MIN: Final = 20
_WIDTH_MAX: Final = 100
_SAID_OF: Final = {"changed": "changed since it was added", "gone": "no longer there"}


def print_hits(
    result: SearchResult,
    marks: Sequence[Sequence[Mark]],
    *,
    whole: bool = False,
    with_space: bool = False,
) -> None:
    """Score, title, place, and the part of the passage that shows why, the query's words marked.

    `marks` has their spans for each hit, or nothing. `whole` shows passages to their end,
    `with_space` whose store has each. Colours and links are for terminals alone.
    """
    import shutil

    columns = shutil.get_terminal_size().columns
    width = max(_WIDTH_MIN, min(_WIDTH_MAX, columns - len(_INDENT)))
    for place, hit in enumerate(result.hits):
        click.echo(_head(hit))
        click.echo(_INDENT + _place(hit, with_space=with_space))
        spans = marks[place] if marks else ()
        text = flowed(hit.text)
        shown = (hit.snippet.start, hit.snippet.end) if hit.snippet else None
        for row in snippet(text, spans, width, rows_max=None if whole else 5, shown=shown):
            click.echo(_INDENT + _marked(text, row))
        if hit.explain:
            parts = ", ".join(f"{name} {value}" for name, value in hit.explain.items())
            click.echo(_INDENT + click.style(parts.replace("_", " "), dim=True))
        click.echo()


def _head(hit: Hit) -> str:
    score = click.style(f"{hit.score:.3f}", fg="cyan")
    head = f"{hit.rank:>2}. {score}  {click.style(clean(hit.title), bold=True)}"
    under = headings_under(hit.title, hit.heading)
    return head + (click.style(f"  {clean(' > '.join(under))}", dim=True) if under else "")


def _place(hit: Hit, *, with_space: bool) -> str:
    freshness = _SAID_OF.get(hit.freshness)
    space = hit.source_space if with_space else None
    weak = "weak" if hit.weak else None
    remarks = (
        hit.doc_id[:9],
        (hit.date or "")[:_DAY_CHARS],
        space,
        hit.site_version,
        weak,
        "OCR" if hit.ocr else None,
        freshness,
        _learnt_by(hit),
        _via(hit),
    )
    notes = "  ".join(filter(None, remarks))
    place = click.style(linked(hit.kind, hit.source, clean(hit.location), hit.line), fg="green")
    return f"{place}  {click.style(notes, dim=True)}"


def _learnt_by(hit: Hit) -> str:
    """What a person types to have a subject whole."""
    call = hit.learn
    return clean(shlex.join(("kb", "learn", call.topic, call.subject))) if call else ""


def _via(hit: Hit) -> str:
    """Whose link brought a neighbour."""
    return clean(f"{hit.via.edge} of {hit.via.selector}") if hit.via else ""


def linked(kind: str, source: str, shown: str, line: int | None = None) -> str:
    """`shown`, clickable on a terminal where a source of this kind lies here or on the web."""
    if source.startswith("git+"):
        from kb.operations.source_place import repository_view

        page = repository_view(source, line)
        return link(clean(page), shown) if page else shown
    if kind == "url" or source.startswith("file://"):
        return link(clean(source), shown)
    path = Path(source)
    # What was handed in over HTTP is a file that lies nowhere.
    is_here = kind in ("file", "entry") and path.is_absolute()
    return link(file_lsid(path), shown) if is_here else shown


def _marked(text: str, row: Row) -> str:
    parts: list[str] = []
    last = row.start
    for start, end in row.spans:
        parts += [clean(text[last:start])]
        parts += [click.style(clean(text[start:end]), fg="yellow", bold=True)]
        last = end
    parts.append(clean(text[last : row.end]))
    before, after = "… " if row.cut_before else "", " …" if row.cut_after else ""
    return before + "".join(parts) + after
