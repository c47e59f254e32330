"""What a command loads: nothing heavy that it does not need."""

import subprocess
import sys
from pathlib import Path

import pytest
from commands import Home, loaded, run, surroundings

HEAVY = {
    "numpy",
    "torch",
    "onnxruntime",
    "tokenizers",
    "sentence_transformers",
    "tantivy",
    "hnswlib",
    "tree_sitter",
    "lmdb",
    "trafilatura",
    "lxml",
    "pypdf",
    "pypdfium2",
    "rich",
    "rjieba",
    "yaml",
    "pathspec",
    "chardet",
    "platformdirs",
    "mcp",
    "anyio",
}


@pytest.mark.parametrize("args", [["--help"], ["--version"], []], ids=str)
def test_help_loads_nothing_heavy(args: list[str]) -> None:
    """The help loads no library but click, and not msgspec."""
    assert loaded(*args) & (HEAVY | {"msgspec", "asyncio"}) == set()


@pytest.mark.parametrize(
    "command", ["add", "search", "ls", "stats", "pack", "check", "compact", "worker", "mcp"]
)
def test_a_commands_help_loads_nothing_heavy(command: str) -> None:
    """A command's own help waits for no model and no index."""
    assert loaded(command, "--help") & HEAVY == set()


WRITERS = (
    *("add", "backup", "check", "compact", "doctor", "embedder", "export", "init", "job", "new"),
    *("note", "pack_archive", "pack_register", "pull", "registry", "rm", "signals", "sources"),
    *("stats", "sync_all", "token", "trust", "visibility", "watch", "worker"),
)
_ROOMS = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(f"kb_cli.{name}")
print(*(name for name in sys.modules if name.startswith("kb.")))
"""


def test_commands_that_write_load_their_operation_alone() -> None:
    """What does the work of an operation is imported when it is called, not with the command."""
    done = subprocess.run(
        [sys.executable, "-c", _ROOMS, *WRITERS],
        capture_output=True,
        text=True,
        env=surroundings(),
        check=True,
    )
    working = (
        "kb.home.app",
        "kb.intake.worker",
        "kb.knowledge.notebook",
        "kb.knowledge.packs.load",
    )
    heavy = ("kb.search", "kb.serve", "kb.store.store", "kb.upkeep", *working)
    names = done.stdout.split()
    assert "kb.operations.remove" in names
    assert [name for name in names if name.startswith(heavy)] == []


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("startup")
    (folder / "a.md").write_text("# Tea\n\nGreen tea.")
    home = Home(folder / "home")
    home.run("add", folder / "a.md")
    home.run("search", "tea")
    return home


def test_lexical_search_loads_no_model_and_no_reader(home: Home) -> None:
    """A search by words loads no model, no reader of formats, no terminal library."""
    names = loaded("--home", str(home.root), "search", "tea", "--mode", "lexical", "--json")
    assert (
        names & {"onnxruntime", "tokenizers", "torch", "trafilatura", "lxml", "pypdf", "pypdfium2"}
        == set()
    )
    assert names & {"rich", "hnswlib", "pathspec", "yaml", "chardet"} == set()
    assert names & {"platformdirs", "tempfile", "logging", "concurrent.futures"} == set()


def test_a_hybrid_search_loads_no_reader(home: Home) -> None:
    """A search by meaning loads the model, and no reader of formats."""
    assert home.run("embedder", "set", "builtin").code == 0
    names = loaded("--home", str(home.root), "search", "tea", "--json")
    assert "onnxruntime" in names
    assert names & {"platformdirs", "tempfile", "logging", "concurrent.futures"} == set()
    assert names & {"torch", "trafilatura", "lxml", "pypdf", "pypdfium2", "rich", "yaml"} == set()


def test_an_unchanged_add_parses_nothing(home: Home, tmp_path: Path) -> None:
    """Adding what is there already starts no reader and loads no model."""
    note = home.root.parent / "a.md"
    args = ["--home", str(home.root), "--cfg", "embed.kind=hashing", "add", str(note)]
    names = loaded(*args)
    assert (
        names & {"trafilatura", "lxml", "pypdf", "pypdfium2", "onnxruntime", "yaml", "rich"}
        == set()
    )


_ROOMS_LOADED = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from kb_cli.main import main
main()
"""


def test_an_unchanged_add_loads_nothing_that_works(home: Home) -> None:
    """No worker stands ready for what did not change, and the caches are not opened."""
    note = home.root.parent / "a.md"
    args = ["--home", str(home.root), "--cfg", "embed.kind=hashing", "add", str(note)]
    # A file that was written a moment ago is read once more.
    assert run([sys.executable, "-c", _ROOMS_LOADED, *args]).code == 0
    ran = run([sys.executable, "-c", _ROOMS_LOADED, *args])
    names = ran.err.splitlines()[-1].split()
    working = (
        *("kb.intake.worker.pool", "kb.intake.worker.chunking", "kb.intake.worker.embedding"),
        *("kb.intake.chunker.chunking", "kb.intake.chunks.", "kb.intake.entities."),
        *("tantivy", "numpy", "logging", "platformdirs"),
    )
    assert "kb.intake.sync.add" in names
    assert [name for name in names if name.startswith(working)] == []


def test_import_of_the_command_is_quiet() -> None:
    """Importing the entry point prints nothing and starts no thread."""
    done = subprocess.run(
        [sys.executable, "-c", "import kb_cli.main, threading; print(threading.active_count())"],
        capture_output=True,
        text=True,
        env=surroundings(),
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


_COUNT = """
import atexit, re._compiler, sys
compiled, real = [], re._compiler.compile
def counted(pattern, flags=0):
    frame = sys._getframe(1)
    while "/re/" in frame.f_code.co_filename:
        frame = frame.f_back
    compiled.append(frame.f_globals.get("__name__", ""))
    return real(pattern, flags)
re._compiler.compile = counted
def told():
    ours = [name for name in sys.modules if name.partition(".")[0] in ("kb", "kb_cli")]
    patterns = [name for name in compiled if name.partition(".")[0] in ("kb", "kb_cli")]
    print(len(ours), len(patterns), "numpy" in sys.modules, file=sys.stderr)
atexit.register(told)
from kb_cli.main import main
main()
"""


@pytest.mark.parametrize(
    ("mode", "modules_max", "patterns_max"), [("lexical", 140, 19), ("hybrid", 153, 19)]
)
def test_a_cold_search_stays_small(
    home: Home, mode: str, modules_max: int, patterns_max: int
) -> None:
    """How many modules of kb a search imports, and how many patterns they compile."""
    assert home.run("embedder", "set", "builtin").code == 0
    args = ["--home", str(home.root), "search", "green tea", "--mode", mode, "--json"]
    ran = run([sys.executable, "-c", _COUNT, *args])
    assert ran.code == 0, ran.err
    *counted, has_numpy = ran.err.splitlines()[-1].split()
    modules, patterns = map(int, counted)
    assert has_numpy == str(mode == "hybrid")
    assert modules <= modules_max
    assert patterns <= patterns_max
