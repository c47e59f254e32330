"""`kb stats`: count what there is."""

import datetime as dt

import click

from kb.operations import stats
from kb_cli.home import open_to_read
from kb_cli.output import clean, many, print_json, size, warn
from kb_cli.pushes import push_line


@click.command(name="stats")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Count docs, passages, vectors, jobs and bytes."""
    app = open_to_read(ctx)
    counts = stats.run(app)
    warning = stats.length_warning(app)
    if warning is not None:
        warn(warning)
    if as_json:
        print_json(counts)
        return
    rows = [
        ("home", counts.home),
        ("docs", _listed(counts.docs)),
        ("ledger", _listed(counts.ledger)),
        ("passages", f"{counts.passages:,}"),
        ("vectors", f"{counts.vectors:,}"),
        ("entities", f"{counts.entities:,}"),
        ("jobs", _listed(counts.jobs)),
        ("model", counts.model),
        ("on disk", size(counts.disk_bytes)),
    ]
    rows += _notable(counts)
    rows += _at_work(counts)
    rows += [("caches", _caches_line(node)) for node in counts.caches]
    for name, value in rows:
        click.echo(f"{name:>18}  {clean(value)}")
    for letter in counts.dead_letters:
        click.echo(
            f"{'failed':>18}  {letter.kind} job of {letter.doc_id[:9]}: {clean(letter.reason)}"
        )
    if counts.dead_letters:
        click.echo(f"{'':>18}  kb worker --retry-failed tries them again")


def _notable(counts: "stats.StatsResult") -> list[tuple[str, str]]:
    """What only some homes have: docs that wait, what is missing, a remote."""
    rows: list[tuple[str, str]] = []
    if counts.by_name:
        rows.append(("known by name", f"{many(counts.by_name, 'doc')}: pictures, sounds, archives"))
    if counts.to_reread:
        rows.append(("to read again", f"{many(counts.to_reread, 'doc')}, by kb worker"))
    if counts.to_recognize:
        rows.append(("waiting for OCR", f"{many(counts.to_recognize, 'doc')}, by kb worker"))
    if counts.pages_without_text:
        rows.append(("pages without text", f"{counts.pages_without_text:,}"))
    if counts.no_graph is not None:
        rows.append(("search by meaning", counts.no_graph))
    if counts.push is not None:
        rows.append(("notebook", push_line(counts.push)))
    return rows


def _at_work(counts: "stats.StatsResult") -> list[tuple[str, str]]:
    """What the workers of machines that share a home do, and when it ends."""
    rows: list[tuple[str, str]] = []
    for node in counts.nodes:
        done = f"{many(node.texts, 'text')}, {node.texts_per_s:,} a second"
        rows.append(("at work", f"{node.node}: {many(node.workers, 'worker')}, {done}"))
    if counts.texts_waiting:
        left = counts.seconds_left
        end = "" if left is None else f", about {dt.timedelta(seconds=left)} left"
        rows.append(("to be embedded", f"{many(counts.texts_waiting, 'text')}{end}"))
    return rows


def _caches_line(node: "stats.CachesOfNode") -> str:
    """How far a machine's caches have come, and what is wrong with them."""
    said = dt.datetime.fromtimestamp(node.seen_ms / 1000).astimezone().isoformat(" ", "minutes")
    behind = f"{many(node.behind, 'change')} behind" if node.behind else "level"
    wrong = f"; {', '.join(node.problems)}; run `kb check --repair` there" if node.problems else ""
    return f"{node.node}: {behind} at {said}{wrong}"


def _listed(numbers: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(numbers.items())) or "none"
