"""Hits as a person reads them."""

import shutil
import sys
from pathlib import Path

import click

from cli.output import clean, link
from kb.model.search import Hit, SearchResult
from kb.model.source import file_lsid

_LINES_MAX = 6


def print_hits(result: SearchResult) -> None:
    """Title, place, score and the passage, its words marked where standard output is a terminal."""
    for hit in result.hits:
        title = click.style(clean(hit.title), bold=True)
        head = f"{hit.rank:>2}. {title}"
        if hit.heading and hit.heading != (hit.title,):
            head += click.style(f"  {clean(' > '.join(hit.heading))}", dim=True)
        click.echo(f"{head}  {click.style(f'{hit.score:.3f}', fg='cyan')}")
        click.echo(f"    {_place(hit)}")
        for line in _passage(hit, result.query):
            click.echo(f"    {line}")
        if hit.explain:
            said = ", ".join(f"{name} {value}" for name, value in hit.explain.items())
            click.echo(click.style(f"    {said}", dim=True))
        click.echo()


def _place(hit: Hit) -> str:
    shown = clean(hit.source)
    if hit.line is not None:
        shown += f":{hit.line}"
    if hit.page is not None:
        shown += f" page {hit.page}"
    place = link(file_lsid(Path(hit.source)), shown) if hit.kind == "file" else shown
    notes = [hit.doc_id[:9]] + ([hit.freshness] if hit.freshness in ("changed", "gone") else [])
    return f"{click.style(place, fg='green')}  {click.style(' '.join(notes), dim=True)}"


def _passage(hit: Hit, query: str) -> list[str]:
    width = max(40, min(100, shutil.get_terminal_size().columns - 4))
    text = hit.text
    spans: list[tuple[int, int]] = []
    if sys.stdout.isatty():
        from kb.index.words import highlight_spans, terms

        spans = highlight_spans(text, terms(query))
    lines: list[str] = []
    place = 0
    for raw in text.split("\n"):
        here = [(a - place, b - place) for a, b in spans if place <= a and b <= place + len(raw)]
        place += len(raw) + 1
        if raw.strip():
            lines.append(_marked(raw, here, width))
        if len(lines) == _LINES_MAX:
            break
    return lines


def _marked(line: str, spans: list[tuple[int, int]], width: int) -> str:
    start = 0
    if spans and spans[0][1] > width:
        start = max(0, spans[0][0] - width // 3)
    end = min(len(line), start + width)
    parts: list[str] = ["…"] if start else []
    last = start
    for a, b in spans:
        if a < last or b > end:
            continue
        parts += [clean(line[last:a]), click.style(clean(line[a:b]), fg="yellow", bold=True)]
        last = b
    parts.append(clean(line[last:end]))
    if end < len(line):
        parts.append("…")
    return "".join(parts)
