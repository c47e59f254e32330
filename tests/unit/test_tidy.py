"""The source read as text: sizes, names, who may import what, and what may be caught.

A module or a function that is longer than the limit says why in a comment that starts with
`# Long because`, among the first lines of it (for a function also on the line above).
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("kb", "cli")
FOLDERS = (*SHIPPED, "scripts", "tests")
FUNCTION_LINES_MAX = 60
MODULE_LINES_MAX = 400
REASON = "# Long because "
MODULE_HEAD_LINES = 30
FUNCTION_HEAD_LINES = 12

EMPTY_NAMES = frozenset(("utils", "util", "helpers", "helper", "common", "base", "manager", "misc"))

# Who may import what: library -> the only folders that may.
OWNERS = {
    "lmdb": "kb/store",
    "psycopg": "kb/store/postgres",
    "obstore": "kb/store/bucket",
    "tantivy": "kb/search/index",
    "hnswlib": "kb/search/index",
    "rjieba": "kb/search/index",
    "onnxruntime": "kb/intake/embed kb/search/rerank",
    "tokenizers": "kb/intake/embed kb/search/rerank",
    "sentence_transformers": "kb/intake/embed",
    "torch": "kb/intake/embed",
    "trafilatura": "kb/intake/canonicalize",
    "pypdf": "kb/intake/canonicalize",
    "pypdfium2": "kb/intake/canonicalize",
    "lxml": "kb/intake/canonicalize",
    "chardet": "kb/intake/canonicalize",
    "tree_sitter": "kb/intake/canonicalize",
    "yaml": "kb/intake/canonicalize",
    "pathspec": "kb/intake/sync",
    "dulwich": "kb/intake/git kb/knowledge/notebook",
    "urllib3": "kb/intake/git kb/knowledge/notebook",
    "httpx": "kb/intake/sync kb/intake/model_server",
    "httpcore": "kb/intake/sync",
    "platformdirs": "kb/model",
    "mcp": "kb/serve",
    "pydantic": "kb/serve",
    "anyio": "kb/serve",
    "uvicorn": "kb/serve",
    "h11": "kb/serve",
    "click": "cli",
}
# Slow to load: only inside the function that needs it.
HEAVY = frozenset((*OWNERS, "numpy", "nacl")) - {"click"}
# Modules that are about the library at their top, and are imported themselves when needed.
HEAVY_AT_TOP = {
    ("kb/store/lmdb_env.py", "lmdb"),
    ("kb/store/postgres/connections.py", "psycopg"),
    ("kb/store/postgres/inspecting.py", "psycopg"),
    ("kb/store/postgres/listener.py", "psycopg"),
    ("kb/store/postgres/postgres_env.py", "psycopg"),
    ("kb/store/postgres/schema.py", "psycopg"),
    ("kb/store/postgres/session.py", "psycopg"),
    ("kb/store/postgres/translate.py", "psycopg"),
    ("kb/intake/sync/http_exchange.py", "httpcore"),
    ("kb/serve/http_protocol.py", "uvicorn"),
    ("kb/serve/http_protocol.py", "h11"),
}

# Where whatever happens is caught, and why; a handler that only cleans up and raises is no such.
BROAD = {
    "cli/kb_cli/main.py": "the surface: every error becomes a line and an exit code",
    "kb/intake/canonicalize/dispatch.py": "parsers raise what they like; it becomes Unparsable",
    "kb/intake/canonicalize/html.py": "the visible text is there whatever the extractor trips over",
    "kb/intake/canonicalize/pdf/document.py": "bad metadata does not cost the text",
    "kb/intake/canonicalize/pdf/pages.py": "one bad page does not cost the others",
    "kb/intake/canonicalize/pdf/pypdf_file.py": "pypdf raises what it likes; it becomes Unparsable",
    "kb/intake/crawl/requests.py": "handed to whoever asks for the response",
    "kb/intake/embed/background.py": "handed to whoever asks for the result",
    "kb/intake/embed/onnx.py": "the runtime has no class of its own; ModelMissing or EmbedError",
    "kb/intake/embed/st.py": "the library has no class of its own; ModelMissing or EmbedError",
    "kb/intake/embed/plugin.py": "a plugin raises what it likes; ModelMissing or EmbedError",
    "kb/search/rerank/rerankers.py": "a plugin raises what it likes; ModelMissing or RerankError",
    "kb/search/rerank/onnx_pairs.py": "the runtime has no class of its own, nor the tokenizer",
    "kb/search/rerank/st_pairs.py": "the library has no class of its own",
    "kb/knowledge/llm/plugin.py": "a plugin raises what it likes; it becomes ModelUnavailable",
    "kb/model/entry_points.py": "a plugin raises what it likes; it becomes PluginFailed",
    "kb/search/index/lexical_tantivy.py": "tantivy raises ValueError and panics; CacheDamaged",
    "kb/serve/http_gate.py": "the surface: every error becomes a problem, and none is told",
    "kb/serve/mcp.py": "one call's surprise must not end the server",
    "kb/serve/stdio.py": "carried to the thread that waits",
    "kb/intake/worker/pool.py": "one job's surprise must not end the pool",
}

LOGGING = frozenset(("debug", "info", "warning", "error", "exception", "critical", "log"))

MACHINE_PATH = re.compile(
    r"""(?<![\w.>\]})/])/(?:tmp|home|root|srv|mnt|opt|work|Users|private)(?=[/"'\s]|$)"""
)


def texts(*folders: str) -> Iterator[tuple[str, str]]:
    """The name and the text of each module."""
    for folder in folders:
        yield from _texts_in(folder)


def modules(*folders: str) -> Iterator[tuple[str, str, ast.Module]]:
    """The name, the text and the tree of each module."""
    for name, text in texts(*folders):
        yield name, text, _tree(text)


@cache
def _texts_in(folder: str) -> list[tuple[str, str]]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    return [(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in paths]


@cache
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


def test_modules_are_short_or_say_why() -> None:
    """A module has at most 400 lines."""
    found = [
        f"{name}: {len(lines)} lines"
        for name, text in texts(*FOLDERS)
        if len(lines := text.splitlines()) > MODULE_LINES_MAX
        and not any(REASON in line for line in lines[:MODULE_HEAD_LINES])
    ]
    assert found == []


def test_functions_are_short_or_say_why() -> None:
    """A function has at most 60 lines, its decorators not counted."""
    found = []
    for name, text in texts(*FOLDERS):
        lines = text.splitlines()
        for node in ast.walk(_tree(text)) if len(lines) > FUNCTION_LINES_MAX else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                head = lines[max(0, node.lineno - 2) : node.lineno + FUNCTION_HEAD_LINES]
                if length > FUNCTION_LINES_MAX and not any(REASON in line for line in head):
                    found.append(f"{name}:{node.lineno}: {node.name} has {length} lines")
    assert found == []


def test_modules_are_named_after_what_they_hold() -> None:
    """No module or folder is called utils or the like."""
    found = [
        name for name, _ in texts(*FOLDERS) if EMPTY_NAMES & set(Path(name).with_suffix("").parts)
    ]
    assert found == []


def test_every_room_asks_its_question() -> None:
    """The docstring of each package in kb/, and of each module beside them, opens with one."""
    files = [*(ROOT / "kb").rglob("__init__.py"), *(ROOT / "kb").glob("*.py")]
    found = []
    for file in sorted(files):
        said = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
        if "?" not in said.partition("\n")[0] and file != ROOT / "kb/__init__.py":
            found.append(file.relative_to(ROOT).as_posix())
    assert found == []


@cache
def imports(tree: ast.Module) -> list[tuple[int, str, bool]]:
    """Line, library, and whether it is loaded with the module, of every import."""
    found: list[tuple[int, str, bool]] = []

    def look(node: ast.AST, *, at_top: bool) -> None:
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        is_checking = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if isinstance(node, ast.Import):
            names = [alias.name.partition(".")[0] for alias in node.names]
            found.extend((node.lineno, name, at_top) for name in names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append((node.lineno, node.module.partition(".")[0], at_top))
        elif isinstance(node, ast.stmt | ast.Module | ast.ExceptHandler | ast.match_case):
            for below in ast.iter_child_nodes(node):
                look(below, at_top=at_top and not is_function and not is_checking)

    look(tree, at_top=True)
    return found


def test_each_library_is_known_to_one_room() -> None:
    """LMDB's name stands only in the store, httpx's where the network is, and so on."""
    found = [
        f"{name}:{line}: {library}"
        for name, _, tree in modules(*SHIPPED)
        for line, library, _ in imports(tree)
        if library in OWNERS
        and not any(name.startswith(f"{owner}/") for owner in OWNERS[library].split())
    ]
    assert found == []


def test_heavy_libraries_load_when_they_are_needed() -> None:
    """No import at a module's top costs more than the command line may take to start."""
    found = [
        f"{name}:{line}: {library}"
        for name, _, tree in modules(*SHIPPED)
        for line, library, at_top in imports(tree)
        if at_top and library in HEAVY and (name, library) not in HEAVY_AT_TOP
    ]
    assert found == []


def test_surprises_are_caught_in_few_places() -> None:
    """Broad handlers stand only where the list above says why, and every entry there is needed."""
    found = set()
    for name, _, tree in modules(*SHIPPED):
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _only_cleans(node):
                found.add(name)
    assert found == set(BROAD)


def _is_broad(handler: ast.ExceptHandler) -> bool:
    caught = ast.unparse(handler.type) if handler.type else "BaseException"
    return bool({"Exception", "BaseException"} & set(re.findall(r"\w+", caught)))


def _only_cleans(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def test_no_path_of_a_machine_is_written_down() -> None:
    """What ships names no folder of a machine: places come from settings and the platform."""
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts(*SHIPPED)
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("said", ['"/tmp"', "open('/srv/x')", "# see /home/me"])
def test_a_machine_path_is_seen(said: str) -> None:
    """The look for machine paths finds them in strings and in comments."""
    assert MACHINE_PATH.search(said)


@pytest.mark.parametrize("said", ["paths.tmp / name", "{home}/tmp/x", "<home>/home.toml", "a/work"])
def test_a_path_of_a_home_is_none_of_a_machine(said: str) -> None:
    """Folders of a home are not taken for a machine's."""
    assert not MACHINE_PATH.search(said)


def calls(tree: ast.Module) -> Iterator[tuple[int, str, ast.Call]]:
    """Line, last part of the name, and the call itself, of every call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Attribute(attr=name) | ast.Name(id=name):
                    yield node.lineno, name, node
                case other:
                    yield node.lineno, ast.unparse(other), node


def test_readers_and_files_never_delete() -> None:
    """In canonicalize and content only a temporary file is removed, and what a sweep names."""
    removing = {"unlink", "remove", "rmtree", "rmdir", "rename"}
    found = [
        f"{name}:{line}: {ast.unparse(call)}"
        for name, _, tree in modules("kb/intake/canonicalize", "kb/store/content")
        for line, called, call in calls(tree)
        if called in removing and not ast.unparse(call.func).startswith("temporary.")
    ]
    # `ContentFiles.remove`, which takes what the compactor has marked in an earlier run.
    assert [place.partition(":")[0] for place in found] == ["kb/store/content/files.py"]


def test_syncers_leave_docs_to_ingest() -> None:
    """In sync and crawl no doc, version, ledger entry, job or passage is written: ingest does."""
    of_docs = re.compile(
        r"\b(?:DOCS|LSIDS|VERSIONS|SOURCE_DOCS|LEDGER|JOBS\w*|CHUNKS|CHUNK_IDS|SOURCE_CHUNKS)\b"
        r"|\bdocs\.(?:put_new_version|replace)\b|\bqueue\.|\blog\.append\b"
    )
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts("kb/intake/sync", "kb/intake/crawl")
        for number, line in enumerate(text.splitlines(), 1)
        if of_docs.search(line)
    ]
    assert found == []


def test_only_the_doc_decides_who_may_see_it() -> None:
    """A visibility is compared with a word in kb/model/doc.py and nowhere else."""
    found = [
        f"{name}:{node.lineno}: {ast.unparse(node)}"
        for name, text in texts(*SHIPPED)
        if "visibility" in text
        for node in ast.walk(_tree(text))
        if isinstance(node, ast.Compare)
        and "visibility" in ast.unparse(node.left)
        and any(isinstance(part, ast.Constant | ast.Tuple) for part in node.comparators)
        and name != "kb/model/doc.py"
        and not any(ast.unparse(part) == "None" for part in node.comparators)
    ]
    assert found == []


def test_no_request_says_who_asks() -> None:
    """Who asks is an argument of its own, given by the runtime: no field of a request holds it."""
    from kb.intake.ingest.request import IngestRequest
    from kb.model.search import SearchRequest

    for record in (SearchRequest, IngestRequest):
        assert not {"scope", "caller", "user"} & set(record.__struct_fields__)
        hints = [
            hint
            for base in record.__mro__
            for hint in vars(base).get("__annotations__", {}).values()
        ]
        assert hints
        assert not [hint for hint in hints if "Scope" in str(hint)]


def test_logs_name_no_source_and_no_content() -> None:
    """In kb/ a log line is fixed words and the names of classes: nothing of what a user has."""
    found = []
    for name, _, tree in modules("kb"):
        for line, called, call in calls(tree):
            if called not in LOGGING or not isinstance(call.func, ast.Attribute):
                continue
            said = [ast.unparse(part) for part in call.args if not isinstance(part, ast.Constant)]
            if any(not re.fullmatch(r"type\(\w+\)\.__name__", part) for part in said):
                found.append(f"{name}:{line}: {ast.unparse(call)}")
    assert found == []


def test_the_store_is_spoken_of_in_its_own_words() -> None:
    """Ordered keys and transactions, not the words of a query language that is not there."""
    foreign = re.compile(r"\bSQL\b|\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|RETURNING|JOIN)\b")
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts("kb")
        if not name.startswith("kb/store/postgres/")
        for number, line in enumerate(text.splitlines(), 1)
        if foreign.search(line)
    ]
    assert found == []


def test_every_wing_and_room_has_a_layer() -> None:
    """A contract holds for each folder that has rooms, and lists all that lies in it."""
    import tomllib

    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    contracts = [one for one in tools["importlinter"]["contracts"] if "containers" in one]
    held = {container for one in contracts for container in one["containers"]}
    with_rooms = {
        ".".join(path.parent.parent.relative_to(ROOT).parts)
        for path in (ROOT / "kb").rglob("__init__.py")
        if path.parent != ROOT / "kb"
    }
    assert held >= with_rooms
    assert all(one["exhaustive"] for one in contracts)


def test_there_are_at_most_ten_wings() -> None:
    """What lies in kb/ fits a look."""
    wings = [path.parent.name for path in (ROOT / "kb").glob("*/__init__.py")]
    assert len(wings) <= 10


def test_no_command_opens_a_transaction() -> None:
    """A command asks an operation of the home; no `with` in cli/ reads or writes a store."""
    found = [
        f"{name}:{node.lineno}: {ast.unparse(item.context_expr)}"
        for name, _, tree in modules("cli")
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        for item in node.items
        if isinstance(item.context_expr, ast.Call)
        and isinstance(item.context_expr.func, ast.Attribute)
        and item.context_expr.func.attr in ("read", "write")
    ]
    assert found == []
