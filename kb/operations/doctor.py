"""What surrounds the store of a home: disk, model, settings, jobs, sources and notebook."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from kb.errors import ConfigError, HeldBack, KbError, NotebookUnfit, StoreBusy

if TYPE_CHECKING:
    from pathlib import Path

    from kb.home.app import App
    from kb.model.config import Settings
    from kb.store.server_state import ServerState
    from kb.upkeep.check.doctor import Advice
    from kb.upkeep.check.plugins import PluginReport


class DoctorReport(Struct, frozen=True, kw_only=True):
    """Whether all is well, and if not, what to do."""

    well: bool
    findings: "tuple[Advice, ...]"
    plugins: "tuple[PluginReport, ...]" = ()
    """kb's own, and those that are installed beside it."""
    server: "ServerState | None" = None
    """That of a home in a database."""


def refused(error: ConfigError | HeldBack) -> DoctorReport:
    """The health of a home that cannot be opened, for its settings or because it is held back."""
    from kb.upkeep.check.doctor import Advice

    if isinstance(error, ConfigError):
        # Without its settings a home is not to be opened.
        place, mend = "settings", "correct that line, then run `kb doctor` again"
    else:
        place, mend = "home", "until then kb does not open it"
    return DoctorReport(well=False, findings=(Advice(place=place, problem=str(error), mend=mend),))


def run(app: "App") -> DoctorReport:
    """Look at all that surrounds the store of a home; `kb.operations.check` looks at the store.

    Nothing is written but a probe in the home's bucket, which is removed. What cannot be looked at
    is a finding, too.
    """
    from kb.upkeep.check.doctor import server_advice
    from kb.upkeep.check.plugins import plugin_reports

    plugins = plugin_reports()
    server = app.store.server_state() if app.store.server_state else None
    findings = (
        *(server_advice(server) if server else ()),
        *(_of_bucket(app) if server else ()),
        *_findings(app),
        *_of_names(plugins, app.settings),
        *_of_plugins(plugins),
    )
    return DoctorReport(well=not findings, findings=findings, plugins=plugins, server=server)


def _findings(app: "App") -> "Iterator[Advice]":
    from kb.upkeep.check.doctor import (
        graph_advice,
        home_advice,
        inspect_host,
        model_advice,
        nodes_advice,
        sampled_texts,
        scripts_advice,
        store_advice,
    )

    yield from _nested(app.paths.root)
    yield from model_advice(app.models.active)
    if app.is_made:
        yield from home_advice(inspect_host(app.paths.root))
        yield from scripts_advice(app.models.active, sampled_texts(app.store))
        yield from graph_advice(app.store, app.settings.index)
        yield from store_advice(app.store)
        yield from nodes_advice(app.store)
        yield from _of_notebook(app)


def _of_names(plugins: "tuple[PluginReport, ...]", settings: "Settings") -> "Iterator[Advice]":
    from kb.upkeep.check.doctor import Advice

    for group, setting, name, none in (
        ("kb.llm", "llm.provider", settings.llm.provider, "none"),
        ("kb.rerankers", "rerank.kind", settings.rerank.kind, ""),
    ):
        if name not in (none, *(row.name for row in plugins if row.group == group)):
            mend = f"install its plugin, or set {setting} to another"
            yield Advice(place="settings", problem=f"there is no {setting} {name}", mend=mend)


def _of_plugins(plugins: "tuple[PluginReport, ...]") -> "Iterator[Advice]":
    from kb.upkeep.check.doctor import Advice

    for plugin in plugins:
        if plugin.problem is not None:
            place = f"plugin {plugin.name} of {plugin.distribution}"
            mend = f"update {plugin.distribution}, or uninstall it"
            yield Advice(place=place, problem=plugin.problem, mend=mend)


def _of_notebook(app: "App") -> "Iterator[Advice]":
    from kb.upkeep.check.doctor import Advice, push_advice
    from kb.upkeep.check.notebook import notebook_advice

    if app.paths.database is not None:
        return
    try:
        advice = notebook_advice(app.store, app.notebook.root)
        yield from advice
        if not advice:
            yield from push_advice(app.notebook.push_report())
    except (NotebookUnfit, StoreBusy) as error:
        yield Advice(place="notebook", problem=str(error), mend="repair it, or name another folder")


def _of_bucket(app: "App") -> "Iterator[Advice]":
    from kb.store.bucket.place import place_of
    from kb.store.bucket_content import try_bucket
    from kb.upkeep.check.doctor import Advice

    with app.store.read() as txn:
        place = place_of(txn)
    if place.url:
        try:
            try_bucket(place)
        except KbError as error:
            mend = "searches need it not; what adds, checks or moves large originals does"
            yield Advice(place="bucket", problem=str(error), mend=mend)


def _nested(home: "Path") -> "Iterator[Advice]":
    from kb.home.spaces.homes import enclosing_project
    from kb.upkeep.check.doctor import Advice

    outer = enclosing_project(home)
    if outer is not None:
        problem = f"it lies in another project, whose docs are not searched here: {outer}"
        mend = "give --home to search that one, or remove the one that you do not need"
        yield Advice(place=str(home), problem=problem, mend=mend)
