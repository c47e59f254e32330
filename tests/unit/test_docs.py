"""The documents say what the code does: names, options, settings, tables, links and tests."""

# Long because it holds a table with an entry for each command, and a test for each document.

import ast
import functools
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from kb_cli.main import COMMANDS
from kb_cli.main import kb as group
from reference.shapes import shapes

import kb.errors
from kb.errors import KbError
from kb.model.config import Settings, TopicSettings
from kb.model.config.sections import TOPIC_KEYS
from kb.store.jobs.queue import TRANSITIONS
from kb.store.kv import TABLES

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/reference"
# The parts of a page of the reference are read as it shows them.
PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if "parts" not in path.parts]
DOCS = (*sorted(ROOT.glob("*.md")), *PAGES)
CLI = "\n".join(path.read_text("utf-8") for path in sorted(REFERENCE.glob("cli*.md")))
JSON = "\n".join(path.read_text("utf-8") for path in sorted(REFERENCE.glob("json-*.md")))
SETTINGS = (REFERENCE / "settings.md").read_text("utf-8")
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
        options = [p for p in found.get_params(context) if isinstance(p, click.Option)]
        # What a command says to itself is hidden.
        params = [option for option in options if not option.hidden]
    return {option for param in params for option in (*param.opts, *param.secondary_opts)}


def family(name: str) -> dict[str, click.Command]:
    """The commands of a group, by name; of a command that is none, nothing."""
    found = command(name)
    return dict(found.commands) if isinstance(found, click.Group) else {}


def documented_options(text: str) -> set[str]:
    """The options that the first table of a text has, all of their names."""
    table = text.partition("| option | what it does |")[2].partition("\n\n")[0]
    said = [one for cells in rows(table) for one in re.findall(r"`(-[^`]*)`", cells[0])]
    return {one.split()[0] for one in said}


def every_command() -> dict[str, click.Command]:
    """Each command and each command of a group, by its words."""
    inner = {f"{name} {short}": found for name in COMMANDS for short, found in family(name).items()}
    return {name: command(name) for name in COMMANDS} | inner


def test_the_reference_has_every_option_of_a_command() -> None:
    """The table of a command lists its options, all of them and no others."""
    commands = every_command()
    assert len(commands) > len(COMMANDS)
    said = {}
    for words in commands:
        level = "###" if " " in words else "##"
        text = section(CLI, f"{level} `kb {words}`").split("\n### ")[0]
        said[words] = documented_options(text)
    options = {words: options_of(found) - {"-h", "--help"} for words, found in commands.items()}
    assert said == options


def test_the_reference_says_what_every_option_does() -> None:
    """No row of a table of options is without a meaning."""
    assert not [cells for cells in rows(CLI) if cells[0].startswith("`-") and not cells[1]]


def test_the_reference_has_every_option_of_the_group() -> None:
    """The options before the command are all there, and no others."""
    text = (REFERENCE / "cli.md").read_text("utf-8")
    assert documented_options(text) == options_of(group) - {"-h", "--help"}


def test_the_reference_has_every_command_and_no_other() -> None:
    """Each command has one heading."""
    headings = re.findall(r"(?m)^## `kb ([\w-]+)`", CLI)
    assert sorted(headings) == sorted(COMMANDS)


def test_no_part_of_the_reference_is_left_over() -> None:
    """Each text of docs/reference/parts/ stands on a page."""
    pages = [path.read_text("utf-8") for path in REFERENCE.glob("*.md")]
    for path in (REFERENCE / "parts").rglob("*.md"):
        assert any(path.read_text("utf-8").strip() in text for text in pages), path


def test_the_reference_is_current() -> None:
    """Its pages are what the code says now."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/write_reference.py", "--check"],
        capture_output=True,
        encoding="utf-8",
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_reference_names_routes_that_there_are() -> None:
    """Each address in the table that is written by hand is that of a route."""
    text = (REFERENCE / "http.md").read_text("utf-8")
    routes = set(re.findall(r"(?m)^## `(.*)`$", text)) | {"POST /v1/NAME", "POST /v1/tools/NAME"}
    named = {
        address for cells in rows(text) for address in re.findall(r"`([A-Z]+ /[^`?]*)", cells[0])
    }
    assert len(named) > 30
    assert named <= routes


def test_the_readme_is_short() -> None:
    """It fits in a few screens; everything else has its page."""
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 200


def test_every_command_has_help() -> None:
    """Each command and each of its options but the plainest says what it does."""
    for name in COMMANDS:
        for found in (command(name), *family(name).values()):
            assert found.help, (name, found.name)


def defaults() -> dict[str, Any]:
    """Every setting with its default, as section.key."""
    said: dict[str, dict[str, Any]] = msgspec.to_builtins(Settings())
    return {f"{part}.{key}": value for part, keys in said.items() for key, value in keys.items()}


def test_the_reference_has_every_setting_with_its_default() -> None:
    """The tables are what kb/model/config/sections.py says, value for value, with a meaning."""
    table = [cells for cells in rows(SETTINGS) if "." in cells[0]]
    assert {cells[0].strip("`"): cells[1] for cells in table} == {
        key: f"`{json.dumps(value)}`" for key, value in defaults().items()
    }
    assert all(cells[3] for cells in table)


def test_the_reference_has_every_key_of_a_topic() -> None:
    """The table of topics is what a layer may say of a topic, with its defaults."""
    text = section(SETTINGS, "## `[kb.topic.ID]`")
    said = {cells[0].strip("`"): cells[1] for cells in rows(text)}
    said.pop("setting")
    default = msgspec.to_builtins(TopicSettings())
    assert said == {key: f"`{json.dumps(default[key])}`" for key in TOPIC_KEYS}


def every_error() -> list[type[KbError]]:
    found = vars(kb.errors).values()
    return [cls for cls in found if isinstance(cls, type) and issubclass(cls, KbError)]


def test_the_reference_has_the_exit_codes_of_the_error_tree() -> None:
    """Besides 0 and Ctrl-C's 130, the codes are those of kb/errors.py."""
    text = (REFERENCE / "exit-codes.md").read_text("utf-8")
    codes = {int(cells[0]) for cells in rows(text) if cells[0].isdigit()}
    assert codes == {0, 130} | {cls.exit_code for cls in every_error()}


def test_the_reference_shows_the_fields_that_json_has() -> None:
    """The document under a command's heading has the fields of its records, and no others."""
    for name, records in shapes().items():
        block = re.search(r"```json\n(.*?)```", section(JSON, f"## `kb {name} --json`"), re.DOTALL)
        assert block is not None, name
        shown = json.loads(block[1])
        for path, record in records:
            part = shown
            for step in filter(None, path.split(".")):
                part = part[step]
                part = part[0] if isinstance(part, list) else part
            assert set(part) == set(record.__struct_encode_fields__), (name, path)


def test_every_json_option_has_its_document() -> None:
    """Each command with `--json` has a document in the reference, or says that it shares one."""
    with_json = {
        name
        for name in COMMANDS
        if any("--json" in options_of(found) for found in (command(name), *family(name).values()))
    }
    assert with_json == {*shapes(), "similar", "sync-knowledge"}


def test_every_pack_command_has_its_document() -> None:
    """`show` shares one; each of the others has its own."""
    block = re.search(r"```json\n(.*?)```", section(JSON, "## `kb pack --json`"), re.DOTALL)
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


@functools.cache
def anchors(path: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.*)$", path.read_text("utf-8"))
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in headings}


def dead_links(path: Path) -> Iterator[str]:
    """The relative links of a document that lead nowhere."""
    text = re.sub(r"(?s)```.*?```", "", path.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists() or (anchor and anchor not in anchors(file)):
            yield f"{path.relative_to(ROOT)}: {target}"


def test_links_lead_somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each relative link names a file that is there, and a heading in it."""
    assert len(DOCS) > 100
    assert [link for path in DOCS for link in dead_links(path)] == []
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# A b\n\n[x](#a-b) [x](page.md#a-b) [x](none.md) [x](#c) [x](https://a.b/)\n")
    assert list(dead_links(page)) == ["page.md: none.md", "page.md: #c"]


def test_files_that_are_named_are_there() -> None:
    """A file of ours that a document names between backticks exists."""
    folders = r"(?:kb|cli|docs|tests|scripts|examples)"
    named = [
        (str(path.relative_to(ROOT)), name)
        for path in DOCS
        for name in re.findall(rf"`({folders}/[\w./-]+)`", path.read_text("utf-8"))
    ]
    assert len(named) > 100
    assert [(path, name) for path, name in named if not (ROOT / name).exists()] == []


def test_the_invariants_are_numbered_in_order() -> None:
    """Each has its heading; the first 32 stay."""
    numbers = re.findall(r"(?m)^### (\d+)\. \S", INVARIANTS)
    assert numbers == [str(number) for number in range(1, max(33, len(numbers)) + 1)]


def invariants() -> dict[str, str]:
    parts = re.split(r"(?m)^### (\d+)\. ", INVARIANTS)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def named_tests(text: str) -> list[str]:
    return re.findall(r"`(tests/[\w/]+\.py::\w+(?:::\w+)?)`", text)


def test_an_invariant_names_what_holds_it() -> None:
    """Each has at least one test."""
    assert [number for number, text in invariants().items() if not named_tests(text)] == []


@functools.cache
def parsed(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text("utf-8"))


def test_a_test_that_is_named_is_there_and_runs() -> None:
    """Each test that docs/invariants.md names is collected by pytest, and not always skipped."""
    names = sorted(set(named_tests(INVARIANTS)))
    assert len(names) > 200
    for name in names:
        file, *path = name.split("::")
        tree = parsed(file)
        assert Path(file).name.startswith("test_"), name
        assert "skip" not in _marks_of_module(tree), name
        scope: list[ast.stmt] = tree.body
        for step in path:
            found = [node for node in scope if getattr(node, "name", None) == step]
            assert len(found) == 1, f"{step} is not in {file}"
            node = found[0]
            assert isinstance(node, ast.FunctionDef | ast.ClassDef)
            marks = {_mark(decorator) for decorator in node.decorator_list}
            assert not {"skip", "slow"} & marks, name
            scope = node.body
        assert path[-1].startswith("test_"), name


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


def test_what_a_room_offers_is_there() -> None:
    """`__all__` names what exists, once, and all that a package took in to hand on."""
    names = modules_with_all()
    assert len(names) > 20
    for name in names:
        _check_offers(name)


def _check_offers(name: str) -> None:
    module = importlib.import_module(name)
    offered = module.__all__
    assert len(set(offered)) == len(offered), name
    assert all(hasattr(module, one) for one in offered), name
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    taken = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kb")
        for alias in node.names
    }
    # What kb itself offers is loaded when it is asked for; the library's own test holds it.
    if str(module.__file__).endswith("__init__.py") and name != "kb":
        assert taken == set(offered), name
