"""Which home, which settings, which exit code: what scripts lean on besides JSON."""

from pathlib import Path
from typing import Any

import pytest
from commands import HASHING, KB, Home, run, surroundings
from kb_cli.main import COMMANDS, SECTIONS


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with one tagged note in it, which the tests only read."""
    folder = tmp_path_factory.mktemp("codes")
    (folder / "tea.md").write_text("# Tea\n\nGreen tea.")
    home = Home(folder / "home")
    assert home.run("add", folder / "tea.md", "--tags", "a").code == 0
    return home


@pytest.mark.parametrize(
    "args",
    [
        ["show", "d0000"],
        ["show", "zzzz"],
        ["show", "c0000"],
        ["similar", "d0000"],
        ["export", "d0000", "--to", "-"],
        ["visibility", "d0000", "public"],
        ["rm", "d0000", "--yes"],
        ["rm", "--tag", "nobody", "--yes"],
        ["search", "tea", "--doc", "d0000"],
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_4(home: Home, args: list[str]) -> None:
    """An id or tag that nothing has is exit 4 and one line that names it."""
    ran = home.run(*args)
    assert ran.code == 4
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    "args",
    [
        ["frobnicate"],
        ["search"],
        ["search", "a", "--mode", "magic"],
        ["search", "a", "-k", "0"],
        ["search", "a", "--max-tokens", "0"],
        ["search", "a", "--batch", "-"],
        ["search", "--batch", "/nowhere/at/all"],
        ["add"],
        ["add", "--title", "T", "one.md", "two.md"],
        ["rm"],
        ["rm", "d0000", "--tag", "a"],
        ["show"],
        ["visibility", "d0000", "secret"],
        ["export"],
        ["compact", "--grace-min", "-1"],
        ["--space", "all", "stats"],
        ["--cfg", "nothing", "ls"],
        ["--cfg", "search.rrf_k=0", "ls"],
    ],
    ids=" ".join,
)
def test_a_wrong_call_is_2(home: Home, args: list[str]) -> None:
    """A call that cannot be meant is exit 2, with nothing on standard output."""
    ran = home.run(*args)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("kb: ")


def test_an_unknown_command_suggests_one(home: Home) -> None:
    """A mistyped command is answered with the one that was meant."""
    assert "did you mean 'search' or 'serve'?" in home.run("serch", "x").err
    assert "did you mean 'visibility'?" in home.run("vis").err
    assert "did you mean 'version'?" in home.run("versoin").err


def test_short_ids(home: Home) -> None:
    """Four characters do where they are enough; fewer are never enough."""
    ident = home.ids()["tea.md"]
    assert home.run("show", ident[:5]).code == 0
    ran = home.run("show", ident[:3])
    assert ran.code == 2
    assert ident[:3] in ran.err


def test_an_ambiguous_id_is_2(tmp_path: Path) -> None:
    """A start that several ids share names some of them and is exit 2."""
    home = Home(tmp_path / "home")
    # 500 ids of 20 hex digits: some two share their first three digits (birthday bound).
    folder = tmp_path / "n"
    folder.mkdir()
    for n in range(500):
        (folder / f"{n}.md").write_text(f"note {n}")
    home.run("add", "-r", folder, "--no-wait")
    starts: dict[str, int] = {}
    for ident in home.ids().values():
        starts[ident[:4]] = starts.get(ident[:4], 0) + 1
    shared = next(start for start, count in starts.items() if count > 1)
    ran = home.run("show", shared)
    assert ran.code == 2
    assert "several ids" in ran.err


@pytest.mark.parametrize(
    "args",
    [["search", "tea"], ["ls"], ["stats"], ["check"], ["compact"], ["search", "tea", "--json"]],
    ids=" ".join,
)
def test_reading_a_home_that_is_not_there_makes_nothing(tmp_path: Path, args: list[str]) -> None:
    """A command that only reads is answered, and leaves nothing on disk."""
    home = Home(tmp_path / "home")
    assert home.run(*args).code == 0
    assert list(tmp_path.iterdir()) == []


def test_search_of_nothing_says_how_to_add(tmp_path: Path) -> None:
    """On an empty store a search says how to put something in."""
    ran = Home(tmp_path / "home").run("search", "tea")
    assert "kb add" in ran.err
    assert ran.out == ""


def listed(argv: list[Any], **options: Any) -> set[str]:
    ran = run(argv, **options)
    assert ran.code == 0, ran.err
    return {Path(row["source"]).name for row in ran.json["docs"]}


def test_which_home(tmp_path: Path) -> None:
    """--home wins over KB_HOME, that over .kb/ upward with the user's own; --space over all."""
    data = tmp_path / "data"
    inner = tmp_path / "project" / "deep" / "er"
    inner.mkdir(parents=True)
    (tmp_path / "project" / ".kb").mkdir()
    plain = surroundings(XDG_DATA_HOME=str(data), HOME=str(tmp_path))
    places = {
        "flag": tmp_path / "flag",
        "env": tmp_path / "env",
        "project": tmp_path / "project" / ".kb",
        "user": data / "kb",
    }
    for name, place in places.items():
        note = tmp_path / f"{name}.md"
        note.write_text(name)
        run([KB, "--home", str(place), *HASHING, "add", str(note), "--no-wait"], env=plain)
    named = plain | {"KB_HOME": str(places["env"])}
    ls = ["ls", "--json"]
    assert listed([KB, "--home", str(places["flag"]), *ls], env=named, cwd=inner) == {"flag.md"}
    assert listed([KB, *ls], env=named, cwd=inner) == {"env.md"}
    assert listed([KB, *ls], env=plain, cwd=inner) == {"project.md", "user.md"}
    assert listed([KB, "--space", "user", *ls], env=named, cwd=inner) == {"user.md"}
    assert listed([KB, "--space", "project", *ls], env=named, cwd=inner) == {"project.md"}
    assert listed([KB, *ls], env=plain, cwd=tmp_path) == {"user.md"}
    assert run([KB, "--space", "project", *ls], env=plain, cwd=tmp_path).code == 2
    assert run([KB, "--home", "", *ls], env=plain, cwd=tmp_path).code == 2


def test_settings_come_from_the_home_the_environment_and_flags(tmp_path: Path) -> None:
    """kb.toml is read, KB_CFG wins over it and --cfg over both; errors name file, line and key."""
    home, note = Home(tmp_path / "home"), tmp_path / "note.zzz"
    home.root.mkdir()
    note.write_text("words")
    config = home.root / "kb.toml"

    def added(*flags: str, env: dict[str, str] | None = None) -> int:
        ran = home.run(*flags, "add", "-r", tmp_path, "--dry-run", "--json", env=env)
        return int(ran.json["added"])

    assert added() == 0
    config.write_text('[ingest]\nextensions = ["zzz"]\n')
    assert added() == 1
    assert added(env=surroundings(KB_CFG='ingest.extensions=["md"]')) == 0
    assert added("--cfg", 'ingest.extensions=["md"]', "--cfg", "ingest.extensions+=zzz") == 1
    config.write_text('# settings\n[ingest]\nfile_bytes_max = "much"\n')
    ran = home.run("ls")
    assert ran.code == 2
    assert f"{config}:3" in ran.err
    assert "file_bytes_max" in ran.err


def test_help_of_every_command(home: Home) -> None:
    """`kb` alone shows the help; every command in it has its own."""
    alone = run([KB])
    assert alone.code == 0
    assert alone.out == run([KB, "--help"]).out
    listed = alone.out.partition(f"{next(iter(SECTIONS))}:")[2].partition("Start with")[0]
    names = [line.split()[0] for line in listed.splitlines() if line.strip() and line[0] == " "]
    assert names == list(COMMANDS)
    for name in names:
        ran = run([KB, name, "--help"])
        assert ran.code == 0
        assert ran.out.startswith(f"Usage: kb {name}")


def test_version() -> None:
    """`kb --version` names the program and its version."""
    from kb import __version__

    assert run([KB, "--version"]).out == f"kb {__version__}\n"
