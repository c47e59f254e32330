"""Which plugins are in use, and what is wrong with the others."""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from kb import __version__
from kb.errors import DISTRIBUTION, PluginFailed
from kb.intake.canonicalize.parsers import BUILT_IN as PARSERS
from kb.intake.canonicalize.parsers import parser_table
from kb.intake.embed.factory import BUILT_IN as EMBEDDERS
from kb.model.config.sections import LLM_PROVIDERS
from kb.model.entry_points import (
    GROUPS,
    InstalledPlugin,
    PluginGroup,
    failed,
    installed,
    load,
    load_maker,
)
from kb.search.rerank.rerankers import BUILT_IN as RERANKERS

_BUILT_IN: Final[dict[PluginGroup, tuple[str, ...]]] = {
    "kb.parsers": tuple(PARSERS),
    "kb.embedders": tuple(EMBEDDERS),
    "kb.rerankers": tuple(RERANKERS),
    "kb.llm": tuple(name for name in LLM_PROVIDERS if name != "none"),
}


class PluginReport(Struct, frozen=True, kw_only=True):
    """A plugin, where it comes from, and why it is left out, if it is. Field names are JSON."""

    group: PluginGroup
    name: str
    distribution: str
    version: str
    problem: str | None = None


def plugin_reports() -> tuple[PluginReport, ...]:
    """Plugins of kb's own, and those that are installed, by group. Imports the installed ones."""
    return tuple(report for group in GROUPS for report in _of_group(group))


def _of_group(group: PluginGroup) -> Iterator[PluginReport]:
    for name in _BUILT_IN[group]:
        yield PluginReport(group=group, name=name, distribution=DISTRIBUTION, version=__version__)
    problems = _parser_problems() if group == "kb.parsers" else _maker_problems(group)
    for plugin in installed(group):
        yield PluginReport(
            group=group,
            name=plugin.name,
            distribution=plugin.distribution,
            version=plugin.version,
            problem=problems.get(plugin.name),
        )


def _parser_problems() -> dict[str, str]:
    table = parser_table()
    unreadable = []
    for plugin, parser in table.used:
        try:
            load(plugin, parser.read)
        except PluginFailed as error:
            unreadable.append(error)
    return _by_plugin((*table.problems, *unreadable))


def _maker_problems(group: PluginGroup) -> dict[str, str]:
    def check(plugin: InstalledPlugin) -> None:
        if plugin.name in _BUILT_IN[group]:
            raise failed(plugin, "is left out: it has the name of one of kb's own")
        load_maker(plugin)

    problems = []
    for plugin in installed(group):
        try:
            check(plugin)
        except PluginFailed as error:
            problems.append(error)
    return _by_plugin(problems)


def _by_plugin(problems: Iterable[PluginFailed]) -> dict[str, str]:
    return {str(problem.fields["plugin"]): str(problem.fields["detail"]) for problem in problems}
