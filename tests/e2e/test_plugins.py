"""Plugins that are really installed: a parser, an embedder, a language model, and broken ones."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Ran, run, surroundings

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "plugins"
CONTACTS = "BEGIN:VCARD\r\nFN:Ada Lovelace\r\nNOTE:Wrote about the engine\r\nEND:VCARD\r\n"
BROKEN = {
    # name: entry points, module
    "kb-gone": ('[project.entry-points."kb.parsers"]\ngone = "kb_gone:PARSER"', "import nowhere\n"),
    "kb-quits": (
        '[project.entry-points."kb.parsers"]\nquits = "kb_quits:PARSER"',
        "print('noise')\nraise SystemExit(7)\n",
    ),
    "kb-unread": (
        '[project.entry-points."kb.parsers"]\nunread = "kb_unread:PARSER"',
        "import kb.plugins as kb\n\n"  # noqa: ISC004
        "PARSER = kb.ParserPlugin(mimes=('text/un',), read='kb_unread:none', fingerprint='1')\n",
    ),
    "kb-odd": (
        "\n".join(
            f'[project.entry-points."kb.{group}"]\n{name} = "kb_odd:PARSER"'
            for group, name in (
                ("parsers", "odd"),
                ("embedders", "onnx"),
                ("rerankers", "odd"),
                ("llm", "odd"),
            )
        ),
        "PARSER = {'mimes': ['text/odd']}\n",
    ),
    "kb-rival": (
        '[project.entry-points."kb.parsers"]\nzz = "kb_rival:PARSER"',
        "import kb.plugins as kb\n\n"  # noqa: ISC004
        "PARSER = kb.ParserPlugin(mimes=('text/vcard',), read='x:y', fingerprint='rival-1')\n",
    ),
}


class Environment:
    """A virtual environment that has kb, what kb needs, and the plugins that are put into it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.home = place.parent / "home"
        venv = [sys.executable, "-m", "venv", "--without-pip", place]
        subprocess.run(venv, check=True, timeout=120)
        self.python = place / "bin" / "python"
        site = place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        borrowed = [str(ROOT), str(ROOT / "cli"), *filter(_is_site, sys.path)]
        (site / "site-packages" / "borrowed.pth").write_text("\n".join(borrowed))

    def pip(self, *words: object) -> None:
        """Run pip for this environment, which is not to reach an index."""
        argv = [sys.executable, "-m", "pip", "--python", self.python, *words]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    def install(self, *folders: Path) -> None:
        """Install distributions from their sources."""
        self.pip("install", "-q", "--no-index", "--no-deps", "--no-build-isolation", *folders)

    def kb(self, *words: object, stdin: str = "", embedder: str = "hashing") -> Ran:
        """Run kb with the plugins."""
        argv = [self.python, "-c", "from kb_cli.main import main; main()", "--home", self.home]
        env = surroundings(HOME=str(self.place.parent), XDG_CONFIG_HOME=None, PYTHONPATH=None)
        return run([*argv, "--cfg", f"embed.kind={embedder}", *words], stdin=stdin, env=env)


def _is_site(folder: str) -> bool:
    return folder.endswith("site-packages")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The examples, installed by pip."""
    environment = Environment(tmp_path_factory.mktemp("plugins") / "env")
    names = ("kb-vcard", "kb-trigrams", "kb-order", "kb-command-llm")
    environment.install(*(EXAMPLES / name for name in names))
    return environment


def test_doctor_lists_them_with_where_they_are_from(installed: Environment) -> None:
    """Beside those of kb itself, and all is well."""
    lines = installed.kb("doctor").out.splitlines()
    assert lines[0].startswith("kb.parsers: markdown, plain, html, pdf, ")
    assert lines[0].endswith(" (kb-search 0.1.0); vcard (kb-vcard 0.1.0)")
    assert lines[1].startswith("kb.embedders: onnx, ")
    assert lines[1].endswith("; trigrams (kb-trigrams 0.1.0)")
    assert lines[2] == (
        "kb.rerankers: onnx, sentence-transformers (kb-search 0.1.0); order (kb-order 0.1.0)"
    )
    assert lines[3].endswith("; command (kb-command-llm 0.1.0)")
    (vcard,) = [
        row for row in installed.kb("doctor", "--json").json["plugins"] if row["name"] == "vcard"
    ]
    assert vcard == {
        "group": "kb.parsers",
        "name": "vcard",
        "distribution": "kb-vcard",
        "version": "0.1.0",
        "problem": None,
    }


def test_a_parsers_files_are_taken_from_folders(installed: Environment, tmp_path: Path) -> None:
    """In the child; they are kept current, and read again when the parser has changed."""
    folder = tmp_path / "contacts"
    folder.mkdir()
    (folder / "all.vcf").write_text(CONTACTS)
    (folder / "none.vcf").write_text("BEGIN:VCARD\nEND:VCARD\n")
    added = installed.kb("add", folder)
    assert added.out == "1 added, 1 failed of 2 scanned\n"
    assert "none.vcf: it has no contact" in added.err
    assert "Wrote about the engine" in installed.kb("search", "who wrote of an engine").out
    (folder / "none.vcf").unlink()
    assert installed.kb("sync-all", "--interval-min", "0").code == 0
    assert installed.kb("add", folder).out == "1 unchanged of 1 scanned\n"
    installed.install(_newer_vcard(tmp_path))
    assert installed.kb("add", folder).out == "1 updated of 1 scanned\n"
    assert "About: Wrote about" in installed.kb("search", "engine").out
    installed.install(EXAMPLES / "kb-vcard")


def test_a_worker_reads_again_what_another_parser_reads(
    installed: Environment, tmp_path: Path
) -> None:
    """From the bytes that the home has: the file is gone. Whatever looks first is not held up."""
    home = ("--home", tmp_path / "home")
    gone, stays = tmp_path / "gone.vcf", tmp_path / "stays.vcf"
    for contact in (gone, stays):
        contact.write_text(CONTACTS.replace("Ada", contact.stem))
    assert installed.kb(*home, "add", gone, stays).code == 0
    gone.unlink()
    installed.install(_newer_vcard(tmp_path))
    (tmp_path / "other.md").write_text("# Other\n\nA kettle.\n")
    assert installed.kb(*home, "add", tmp_path / "other.md").code == 0
    assert installed.kb(*home, "stats", "--json").json["to_reread"] == 2
    assert "to read again  2 docs" in installed.kb(*home, "stats").out
    before = installed.kb(*home, "search", "gone engine", "--json").json["hits"]
    assert "Note: Wrote about" in before[0]["text"]
    assert installed.kb(*home, "worker", "--drain").code == 0
    assert installed.kb(*home, "stats", "--json").json["to_reread"] == 0
    hits = installed.kb(*home, "search", "about the engine", "--json").json["hits"]
    assert [("About: Wrote about" in hit["text"]) for hit in hits[:2]] == [True, True]
    # When the file was changed is still known.
    assert before[0]["date"]
    assert {hit["date"] for hit in hits[:2]} <= {hit["date"] for hit in before}
    assert installed.kb(*home, "add", stays).out == "1 unchanged of 1 scanned\n"
    assert installed.kb(*home, "check").code == 0
    installed.install(EXAMPLES / "kb-vcard")


def _newer_vcard(tmp_path: Path) -> Path:
    newer = tmp_path / "newer"
    newer.mkdir()
    source = (EXAMPLES / "kb-vcard" / "kb_vcard.py").read_text()
    (newer / "kb_vcard.py").write_text(
        source.replace("vcard-1", "vcard-2").replace('"Note"', '"About"')
    )
    project = (EXAMPLES / "kb-vcard" / "pyproject.toml").read_text()
    (newer / "pyproject.toml").write_text(project.replace("0.1.0", "0.2.0"))
    return newer


def test_an_embedder_is_set_by_name(installed: Environment, tmp_path: Path) -> None:
    """By the settings of a new home; its vectors are its own, and a typo in a name is told."""
    (tmp_path / "a.md").write_text("# Kettles\n\nA kettle boils water.\n")
    home = ("--home", tmp_path / "home")
    assert installed.kb(*home, "add", tmp_path / "a.md", embedder="trigrams").code == 0
    hits = installed.kb(
        *home, "search", "--mode", "dense", "ketle", "--json", embedder="trigrams"
    ).json["hits"]
    assert [hit["title"] for hit in hits] == ["Kettles"]
    assert installed.kb(*home, "stats", "--json", embedder="trigrams").json["model"] == "trigrams:1"
    other = ("--home", tmp_path / "other")
    wrong = installed.kb(*other, "add", tmp_path / "a.md", embedder="trigram")
    assert wrong.code == 1
    assert "no embedder trigram, only onnx, multilingual, " in wrong.err
    assert "hashing, openai, ollama, trigrams; install its plugin" in wrong.err
    assert installed.kb(*home, "embedder", "set", "hashing", embedder="trigrams").code == 0
    assert installed.kb(*home, "embedder", "set", "trigrams", embedder="trigrams").code == 0


def test_a_reranker_is_set_by_name(installed: Environment, tmp_path: Path) -> None:
    """It orders what words and vectors cannot tell apart, and a typo in its name is told."""
    (tmp_path / "a.md").write_text("in the end dog bites man as all know\n")
    (tmp_path / "b.md").write_text("in the end man bites dog as all know\n")
    home = ("--home", tmp_path / "home")
    assert installed.kb(*home, "add", tmp_path / "a.md", tmp_path / "b.md").code == 0
    for query in ("dog bites man", "man bites dog"):
        ran = installed.kb(
            *home, "--cfg", "rerank.kind=order", "search", query, "--explain", "--json"
        )
        first, second = ran.json["hits"]
        assert query in first["text"]
        assert (first["explain"]["rerank"], second["explain"]["rerank"]) == (1.0, 0.0)
    typo = installed.kb(*home, "--cfg", "rerank.kind=ordre", "search", "dog")
    assert typo.code == 0
    assert "no reranker ordre, only onnx, sentence-transformers, order" in typo.err


def test_a_language_model_answers(installed: Environment, tmp_path: Path) -> None:
    """What it says is checked against its sources; where it fails, extracts answer."""
    (tmp_path / "lease.md").write_text("# Lease\n\nA cat or a small dog may live in the flat.\n")
    home = ("--home", tmp_path / "home")
    assert installed.kb(*home, "add", tmp_path / "lease.md").code == 0
    model = ("--cfg", "llm.provider=command", "--cfg")
    says = "llm.model=sh -c 'cat > /dev/null; echo A small dog may live in the flat. [1]'"
    answer = installed.kb(*home, *model, says, "ask", "may a dog live there?", "--json").json
    assert answer["kind"] == "synthesis"
    assert [sentence["supported"] for sentence in answer["sentences"]] == [True]
    failed = installed.kb(*home, *model, "llm.model=sh -c false", "ask", "may a dog live there?")
    assert "small dog may live in the flat" in failed.out
    assert "command:sh -c false" in failed.out + failed.err


def test_what_no_plugin_has_any_more_locks_nothing(tmp_path: Path) -> None:
    """Uninstalled, while the settings still name it: whatever does not need it goes on."""
    environment = Environment(tmp_path / "env")
    environment.install(EXAMPLES / "kb-vcard", EXAMPLES / "kb-trigrams")
    (tmp_path / "all.vcf").write_text(CONTACTS)
    assert environment.kb("add", tmp_path / "all.vcf", embedder="trigrams").code == 0
    environment.pip("uninstall", "-q", "-y", "kb-vcard", "kb-trigrams")
    provider = ("--cfg", "llm.provider=gone")
    for words in (("ls",), ("search", "--mode", "lexical", "engine"), ("config", "path")):
        ran = environment.kb(*provider, *words, embedder="trigrams")
        assert (ran.code, "no embedder" in ran.err) == (0, False), words
    # kb's own reader of the format takes the plugin's place.
    taken = environment.kb("add", tmp_path / "all.vcf", "--no-wait")
    assert taken.out == "1 updated of 1 scanned\n"
    health = environment.kb(*provider, "doctor", embedder="trigrams")
    assert health.code == 3
    assert "there is no embedder trigrams" in health.out
    assert "there is no llm.provider gone" in health.out


def test_broken_plugins_are_named_and_left_out(tmp_path: Path) -> None:
    """Nothing else breaks: the others work, and files that a broken one would read are named."""
    environment = Environment(tmp_path / "env")
    for name, (entry_points, code) in BROKEN.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name.replace('-', '_')}.py").write_text(code)
        header = f'[project]\nname = "{name}"\nversion = "1"\n'
        build = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        (folder / "pyproject.toml").write_text(build + header + entry_points + "\n")
    # At once, since each start of pip takes a second.
    environment.install(*(tmp_path / name for name in BROKEN), EXAMPLES / "kb-vcard")
    (tmp_path / "all.vcf").write_text(CONTACTS)
    (tmp_path / "a.md").write_text("A brown fox.\n")
    added = environment.kb("add", tmp_path / "all.vcf", tmp_path / "a.md")
    assert added.out == "2 added of 2 scanned\n"
    health = environment.kb("doctor")
    assert health.code == 3
    problems = {
        match[1]: match[2] for match in re.finditer(r"(?m)^plugin (\S+ of \S+): (.*)$", health.out)
    }
    assert problems.keys() == {
        *("gone of kb-gone", "odd of kb-odd", "onnx of kb-odd", "zz of kb-rival"),
        *("quits of kb-quits", "unread of kb-unread"),
    }
    assert "No module named 'nowhere'" in problems["gone of kb-gone"]
    assert "is left out: it reads text/vcard, as vcard does" in problems["zz of kb-rival"]
    assert "has no attribute 'none'" in problems["unread of kb-unread"]
    assert environment.kb("ls", "--json").json["total"] == 2
    assert "it has the name of one of kb's own" in problems["onnx of kb-odd"]
    ran = environment.kb("--cfg", "rerank.kind=odd", "search", "fox")
    assert (ran.code, "A brown fox." in ran.out) == (0, True)
    assert "not reranked: the plugin odd of kb-odd names a dict, not a function" in ran.err
    failed = environment.kb("--cfg", "llm.provider=odd", "--cfg", "llm.model=x", "ask", "a fox?")
    assert "A brown fox." in failed.out
    assert "the plugin odd of kb-odd names a dict, not a function" in failed.out + failed.err


@pytest.mark.parametrize(
    ("page", "folder"),
    [
        ("parser", "kb-vcard"),
        ("embedder", "kb-trigrams"),
        ("reranker", "kb-order"),
        ("llm", "kb-command-llm"),
    ],
)
def test_the_page_shows_the_example(page: str, folder: str) -> None:
    """Word for word: what a reader copies is what the tests install."""
    text = (ROOT / "docs" / "how-to" / f"plugin-{page}.md").read_text()
    blocks = re.findall(r"(?s)```(?:toml|python)\n(.*?)```", text)
    project = (EXAMPLES / folder / "pyproject.toml").read_text()
    (module,) = (EXAMPLES / folder).glob("*.py")
    assert blocks == [project[project.index("[project]") :], module.read_text()]
