"""`kb doctor`: is all well around the store?"""

from collections.abc import Iterator

import click

from kb.errors import ConfigError, HeldBack, ItemsFailed
from kb.operations import doctor
from kb.operations.doctor import DoctorReport
from kb_cli.home import home_of, open_app
from kb_cli.output import clean, many, print_json


class NeedsAttention(ItemsFailed):
    """Something around the store is to be mended."""


@click.command(name="doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Look at disk, model, settings, plugins, jobs and sources, and say what to mend.

    Exit 3 where something needs attention. `kb check` looks at the store itself.
    """
    health = _health(ctx)
    if as_json:
        print_json(health)
    else:
        for line in (*_server(health), *_plugins(health)):
            click.echo(clean(line))
        for finding in health.findings:
            click.echo(clean(f"{finding.place}: {finding.problem} ({finding.mend})"))
        if health.well:
            click.echo("all is well")
    if health.findings:
        raise NeedsAttention(f"{many(len(health.findings), 'finding')}; each says how to fix it")


def _server(health: DoctorReport) -> Iterator[str]:
    """A line on the server of a home in a database."""
    server = health.server
    if server is None:
        return
    role = "replica" if server.is_replica else f"primary with {many(server.replicas, 'replica')}"
    yield (
        f"server: PostgreSQL {server.version}, {role}; {server.round_trip_ms:g} ms a round trip; "
        f"{server.connections} of {server.connections_max} connections; "
        f"synchronous_commit {server.synchronous_commit}; "
        f"this user may {'read and write' if server.may_write else 'only read'}"
    )


def _plugins(health: DoctorReport) -> Iterator[str]:
    """A line for each kind of plugin: which are there, and from where."""
    groups = dict.fromkeys(plugin.group for plugin in health.plugins)
    for group in groups:
        by_origin: dict[str, list[str]] = {}
        for plugin in health.plugins:
            if plugin.group == group and plugin.problem is None:
                origin = f"{plugin.distribution} {plugin.version}"
                by_origin.setdefault(origin, []).append(plugin.name)
        parts = (f"{', '.join(names)} ({origin})" for origin, names in by_origin.items())
        yield f"{group}: {'; '.join(parts)}"


def _health(ctx: click.Context) -> DoctorReport:
    try:
        home_of(ctx)
    except (ConfigError, HeldBack) as error:
        return doctor.refused(error)
    return doctor.run(open_app(ctx, create=False))
