"""The documents say what the code does: names, options, settings, tables, links and tests."""

# Long because it holds a table with an entry for each command, and a test for each document.

import ast
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from backup_shapes import backup_shapes
from kb_cli.main import COMMANDS
from kb_cli.main import kb as group
from note_shapes import note_shapes
from pack_shapes import pack_shapes
from registry_shapes import registry_shapes

import kb.errors
from kb.errors import KbError
from kb.model.config import Settings, TopicSettings
from kb.model.config.sections import TOPIC_KEYS
from kb.operations.facets import FacetsOfSpaces
from kb.operations.growth import Growth, MonthCount
from kb.search.facets import FacetValue
from kb.store.jobs.queue import TRANSITIONS
from kb.store.kv import TABLES

ROOT = Path(__file__).resolve().parents[2]
DOCS = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")))
README = (ROOT / "README.md").read_text("utf-8")
FORMAT = (ROOT / "docs/format.md").read_text("utf-8")
ARCHITECTURE = (ROOT / "docs/ARCHITECTURE.md").read_text("utf-8")
INVARIANTS = (ROOT / "docs/invariants.md").read_text("utf-8")


def section(text: str, heading: str) -> str:
    """What stands under the one heading that starts like this, down to the next of its level."""
    level = heading.partition(" ")[0]
    stop = rf"\n#{{1,{len(level)}}} "
    parts = re.split(rf"(?m)^{re.escape(heading)}(?![\w-])[^\n]*\n", text)
    assert len(parts) == 2, f"{heading!r} stands {len(parts) - 1} times"
    return re.split(stop, parts[1])[0]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of each table row; a bar behind a backslash is none."""
    for line in text.splitlines():
        if line.startswith("|") and not line.startswith("|---"):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def command(name: str) -> click.Command:
    found = group.get_command(click.Context(group), name)
    assert found is not None
    return found


def options_of(found: click.Command) -> set[str]:
    with click.Context(found) as context:
        params = [p for p in found.get_params(context) if isinstance(p, click.Option)]
    return {option for param in params for option in (*param.opts, *param.secondary_opts)}


def family(name: str) -> dict[str, click.Command]:
    """The commands of a group, by name; of a command that is none, nothing."""
    found = command(name)
    return dict(found.commands) if isinstance(found, click.Group) else {}


def documented_options(heading: str) -> set[str]:
    first = [cells[0] for cells in rows(section(README, heading))]
    quoted = [said for cell in first for said in re.findall(r"`([^`]*)`", cell)]
    return {said.split()[0] for said in quoted if said.startswith("-")}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_has_every_option_of_a_command(name: str) -> None:
    """The table of a command lists its options, all of them and no others."""
    heading = re.search(rf"(?m)^### `kb {name}[ `][^\n]*$(?!\n\n[^\n]*```)", README)
    assert heading is not None
    assert documented_options(heading[0]) == options_of(command(name)) - {"-h", "--help"}


@pytest.mark.parametrize("group_name", ["pack", "backup", "note", "registry", "token", "config"])
def test_the_readme_has_every_option_of_a_groups_commands(group_name: str) -> None:
    """In the table each command of the group has its row, with all of its options."""
    cells_of = {
        said[1]: set(re.findall(r"(?<!\w)--?[\w-]+", cells[1]))
        for cells in rows(section(README, f"### `kb {group_name} COMMAND`"))
        if (said := re.match(rf"`kb {group_name} ([\w-]+)", cells[0]))
    }
    options = {name: options_of(found) for name, found in family(group_name).items()}
    assert cells_of == {name: said - {"-h", "--help", "--json"} for name, said in options.items()}


def test_the_readme_has_every_option_of_the_group() -> None:
    """The options before the command are all there, and no others."""
    assert documented_options("### `kb`") == options_of(group) | {"-h", "--help"}


def test_the_readme_has_every_command_and_no_other() -> None:
    """Each command has one heading under Commands."""
    headings = re.findall(r"(?m)^### `kb ([\w-]+)", section(README, "## Commands"))
    assert sorted(headings) == sorted(COMMANDS)


def test_every_command_has_help() -> None:
    """Each command and each of its options but the plainest says what it does."""
    for name in COMMANDS:
        for found in (command(name), *family(name).values()):
            assert found.help, (name, found.name)


def defaults() -> dict[str, Any]:
    """Every setting with its default, as section.key."""
    said: dict[str, dict[str, Any]] = msgspec.to_builtins(Settings())
    return {f"{part}.{key}": value for part, keys in said.items() for key, value in keys.items()}


def test_the_readme_has_every_setting_with_its_default() -> None:
    """The settings table is what kb/model/config/sections.py says, value for value."""
    said = {cells[0].strip("`"): cells[1] for cells in rows(section(README, "## Settings"))}
    said.pop("setting")
    assert said == {key: f"`{json.dumps(value)}`" for key, value in defaults().items()}


def test_the_readme_has_every_key_of_a_topic() -> None:
    """The table under Topics is what a layer may say of a topic, with its defaults."""
    said = {cells[0].strip("`"): cells[1] for cells in rows(section(README, "## Topics"))}
    said.pop("key")
    default = msgspec.to_builtins(TopicSettings())
    assert said == {key: f"`{json.dumps(default[key])}`" for key in TOPIC_KEYS}


def every_error() -> list[type[KbError]]:
    found = vars(kb.errors).values()
    return [cls for cls in found if isinstance(cls, type) and issubclass(cls, KbError)]


def test_the_readme_has_the_exit_codes_of_the_error_tree() -> None:
    """Besides 0 and Ctrl-C's 130, the codes are those of kb/errors.py."""
    codes = {
        int(cells[0]) for cells in rows(section(README, "## Exit codes")) if cells[0].isdigit()
    }
    assert codes == {0, 130} | {cls.exit_code for cls in every_error()}


# Long because it is one table, with an entry for each command.
def shapes() -> dict[str, list[tuple[str, Any]]]:
    """For each document in the README, the records it shows: where, and of which class."""
    from kb.home.stats import DeadLetter, Stats
    from kb.intake.sync import report as added
    from kb.knowledge.answers import Answer, Sentence, Source
    from kb.knowledge.guide import Guidance, GuideChunk
    from kb.knowledge.notebook import JobReport
    from kb.knowledge.registry.report import PulledLine, PullReport, ReadLine
    from kb.knowledge.topics import Knowledge, Learned, LeftOut
    from kb.model import doc, origin, search
    from kb.model.signal import Signal
    from kb.operations import (
        docs,
        doctor,
        embedder,
        entities,
        entries,
        jobs,
        remove,
        settings,
        show,
        signals,
        sources,
        tokens,
        trust,
        visibility,
    )
    from kb.store.trust import TrustedHome
    from kb.upkeep.check import report as checked
    from kb.upkeep.check.doctor import Advice
    from kb.upkeep.compactor.report import CompactReport

    return {
        "add": [("", added.AddReport), ("docs", added.DocLine), ("problems", added.SourceProblem)],
        "search": [
            ("", search.SearchResult),
            ("hits", search.Hit),
            ("hits.legs", search.Legs),
            ("entity_alignment", search.EntityAlignment),
        ],
        "ask": [("", Answer), ("sentences", Sentence), ("sources", Source)],
        "ls": [("", docs.Docs), ("docs", docs.DocRow)],
        "show": [
            ("", show.WholeDoc),
            ("doc", doc.Doc),
            ("passages", show.Passage),
            ("references", entries.Reference),
        ],
        "stats": [("", Stats), ("dead_letters", DeadLetter)],
        "embedder": [("", embedder.Embedders)],
        "learn": [("", Learned), ("left_out", LeftOut)],
        "prompt": [("", Knowledge)],
        "rm": [("", remove.RemoveResult)],
        "entities": [
            ("", entities.EntitiesPage),
            ("entities", search.KnownEntity),
        ],
        "growth": [("", Growth), ("months", MonthCount)],
        "facets": [("", FacetsOfSpaces), ("kinds", FacetValue)],
        "pack": pack_shapes(),
        "entries": [("", entries.Entries), ("entries", entries.ListedEntry)],
        "registry": registry_shapes(),
        "pull": [("", PullReport), ("registries", ReadLine), ("entries", PulledLine)],
        "guide": [("", Guidance), ("chunks", GuideChunk)],
        "signals": [("", signals.SignalList), ("signals", Signal)],
        "sync-all": [
            ("", added.SyncReport),
            ("sources", added.SourceLine),
            ("sources.problems", added.SourceProblem),
        ],
        "token": [("", tokens.TokenList), ("tokens", tokens.ListedToken)],
        "trust": [("", trust.TrustedHomes), ("homes", TrustedHome)],
        "sources": [("", sources.SourceList), ("sources", origin.Origin)],
        "note": note_shapes(),
        "job": [("", jobs.JobList), ("jobs", JobReport)],
        "doctor": [("", doctor.DoctorReport), ("findings", Advice)],
        "config": [
            ("list", settings.SettingsReport),
            ("list.files", settings.SettingsFile),
            ("list.settings", settings.SettingRow),
            ("get", settings.SettingRow),
            ("path", settings.KbFolders),
        ],
        "visibility": [("", visibility.SetVisibilityResult)],
        "compact": [("", CompactReport)],
        "backup": backup_shapes(),
        "check": [
            ("", checked.CheckReport),
            ("checked", checked.CheckCounts),
            ("findings", checked.Finding),
        ],
    }


@pytest.mark.parametrize("name", shapes())
def test_the_readme_shows_the_fields_that_json_has(name: str) -> None:
    """The document under a command's heading has the fields of its records, and no others."""
    block = re.search(r"```json\n(.*?)```", section(README, f"### `kb {name} --json`"), re.DOTALL)
    assert block is not None
    shown = json.loads(block[1])
    for path, record in shapes()[name]:
        part = shown
        for step in filter(None, path.split(".")):
            part = part[step]
            part = part[0] if isinstance(part, list) else part
        assert set(part) == set(record.__struct_encode_fields__)


def test_every_json_option_has_its_document() -> None:
    """Each command with `--json` has a document in the README, or says that it shares one."""
    with_json = {
        name
        for name in COMMANDS
        if any("--json" in options_of(found) for found in (command(name), *family(name).values()))
    }
    assert with_json == {*shapes(), "similar", "sync-knowledge"}


def test_every_pack_command_has_its_document() -> None:
    """`show` shares one; each of the others has its own."""
    block = re.search(r"```json\n(.*?)```", section(README, "### `kb pack --json`"), re.DOTALL)
    assert block is not None
    assert {*json.loads(block[1]), "show"} == set(family("pack"))


def test_the_format_has_every_table() -> None:
    """Each table of the store has a row under Tables, and no row is of another."""
    said = [cells[0].strip("`") for cells in rows(section(FORMAT, "## Tables"))]
    assert said[0] == "table"
    assert sorted(said[1:]) == sorted(TABLES)


def test_the_format_has_every_transition_of_a_job() -> None:
    """Under Jobs, a row for each transition: its letter, from, event, to."""
    said = [cells[:4] for cells in rows(section(FORMAT, "## Jobs"))][1:]
    source = (ROOT / "kb/store/jobs/queue.py").read_text("utf-8")
    letters = dict(re.findall(r'\("\w+", "(\w+)"\): .*# (\w)', source))
    expected = []
    for (state, event), (left, spent) in TRANSITIONS.items():
        to = left if left == spent else f"{left}, or {spent}"
        expected.append([letters[event], state, event, to])
    assert said == expected


def rooms() -> list[str]:
    """Every folder of kb that holds code."""
    kb = ROOT / "kb"
    return sorted(path.parent.relative_to(kb).as_posix() for path in kb.rglob("*/__init__.py"))


def test_the_architecture_has_every_room() -> None:
    """Each package of kb has a heading under Rooms, and asks there what its docstring asks."""
    headings = re.findall(r"(?m)^###+ `kb/([\w/]+)/`: (.*)$", section(ARCHITECTURE, "## Rooms"))
    assert sorted(name for name, _ in headings) == rooms()
    for name, question in headings:
        said = ast.get_docstring(ast.parse((ROOT / f"kb/{name}/__init__.py").read_text("utf-8")))
        assert said is not None
        assert question == said.partition("?")[0] + "?"


def test_the_architecture_has_the_layers_of_the_import_contract() -> None:
    """The wings are those that the linter checks, in its order."""
    import tomllib

    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    wings = next(one for one in contracts["contracts"] if one.get("containers") == ["kb"])
    block = re.search(
        r"```text\n(.*?)```", section(ARCHITECTURE, "## Who may import whom"), re.DOTALL
    )
    assert block is not None
    said = [line.strip() for line in block[1].splitlines() if line.strip()]
    assert said == wings["layers"]


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.*)$", path.read_text("utf-8"))
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in headings}


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    """Each relative link names a file that is there, and a heading in it."""
    text = re.sub(r"(?s)```.*?```", "", path.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_files_that_are_named_are_there(path: Path) -> None:
    """A file of ours that a document names between backticks exists."""
    folders = r"(?:kb|cli|docs|tests|scripts|examples)"
    for name in re.findall(rf"`({folders}/[\w./-]+)`", path.read_text("utf-8")):
        assert (ROOT / name).exists(), name


def test_the_invariants_are_numbered_in_order() -> None:
    """Each has its heading; the first 32 stay."""
    numbers = re.findall(r"(?m)^### (\d+)\. \S", INVARIANTS)
    assert numbers == [str(number) for number in range(1, max(33, len(numbers)) + 1)]


def invariants() -> dict[str, str]:
    parts = re.split(r"(?m)^### (\d+)\. ", INVARIANTS)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def named_tests(text: str) -> list[str]:
    return re.findall(r"`(tests/[\w/]+\.py::\w+(?:::\w+)?)`", text)


@pytest.mark.parametrize("number", invariants())
def test_an_invariant_names_what_holds_it(number: str) -> None:
    """Each has at least one test."""
    assert named_tests(invariants()[number])


@pytest.mark.parametrize("name", sorted(set(named_tests(INVARIANTS))))
def test_a_test_that_is_named_is_there_and_runs(name: str) -> None:
    """Each test that docs/invariants.md names is collected by pytest, and not always skipped."""
    file, *path = name.split("::")
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    assert Path(file).name.startswith("test_")
    assert "skip" not in _marks_of_module(tree)
    scope: list[ast.stmt] = tree.body
    for step in path:
        found = [node for node in scope if getattr(node, "name", None) == step]
        assert len(found) == 1, f"{step} is not in {file}"
        node = found[0]
        assert isinstance(node, ast.FunctionDef | ast.ClassDef)
        assert not {"skip", "slow"} & {_mark(decorator) for decorator in node.decorator_list}
        scope = node.body
    assert path[-1].startswith("test_")


def _mark(decorator: ast.expr) -> str:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called).removeprefix("pytest.mark.")


def _marks_of_module(tree: ast.Module) -> str:
    marks = [
        ast.unparse(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    return " ".join(marks).replace("skipif", "")


def modules_with_all() -> list[str]:
    """Modules of ours that say what they offer."""
    found = []
    for folder in ("kb", "cli/kb_cli"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if re.search(r"(?m)^__all__", path.read_text("utf-8")):
                dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                found.append(dotted.removesuffix(".__init__"))
    return found


@pytest.mark.parametrize("name", modules_with_all())
def test_what_a_room_offers_is_there(name: str) -> None:
    """`__all__` names what exists, once, and all that a package took in to hand on."""
    module = importlib.import_module(name)
    offered = module.__all__
    assert len(set(offered)) == len(offered)
    assert all(hasattr(module, one) for one in offered)
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    taken = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kb")
        for alias in node.names
    }
    # What kb itself offers is loaded when it is asked for; the library's own test holds it.
    if str(module.__file__).endswith("__init__.py") and name != "kb":
        assert taken == set(offered)
