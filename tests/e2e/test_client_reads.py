"""`kb --server`: what is read from a running server is printed as if its home were here."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import HASHING, KB, Home, Ran, run, surroundings
from http_server import Running, serving

TEXTS = {
    "boat.md": "---\ntags: [sails]\n---\n# Boat\n\nThe keel is made of oak. #rig by @ada",
    "soup.md": "# Soup\n\nSoup needs salt, and a bay leaf. 湯要加鹽。",
    "long.md": "# Long\n\n" + "The harbour is deep and wide, they say. " * 60,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("client")
    (folder / "src").mkdir()
    for name, text in TEXTS.items():
        (folder / "src" / name).write_text(text)
    made = Home(folder / "home")
    assert made.run("add", folder / "src").code == 0
    (folder / "src" / "gone.md").write_text("# Gone")
    assert made.run("add", folder / "src" / "gone.md").code == 0
    assert made.run("rm", made.ids()["gone.md"], "--yes").code == 0
    assert made.run("note", "add", "--wait", "--hint", "rig", "# Mast\n\nSpruce.").code == 0
    return made


@pytest.fixture(scope="module")
def local(home: Home) -> dict[tuple[Any, ...], Ran]:
    """What each command prints at home, where no server runs yet that could be asked."""
    return {args: home.run(*args) for args in commands(home)}


@pytest.fixture(scope="module")
def server(home: Home, local: dict[tuple[Any, ...], Ran]) -> Iterator[Running]:
    assert local
    with serving(home) as running:
        yield running


def there(server: Running, *args: object, stdin: str = "", **env: str | None) -> Ran:
    """A command as it is asked of a server, in surroundings that know no home."""
    argv = [KB, "--server", f"http://127.0.0.1:{server.port}", *map(str, args)]
    return run(argv, stdin=stdin, env=surroundings(**env))


def answered(server: Running) -> int:
    """How many searches of the command line the server has answered well."""
    text = server.get("/metrics").body.decode()
    found = re.search(r'requests_total{route="/v1/search",method="POST",status="200"} (\d+)', text)
    return int(found[1]) if found else 0


def commands(home: Home) -> list[tuple[Any, ...]]:
    doc = home.ids()["boat.md"]
    passage = home.run("show", doc, "--json").json["passages"][0]["chunk_id"]
    job = home.run("job", "ls", "--json").json["jobs"][0]["job_id"]
    return [
        ("search", "oak keel"),
        ("search", "oak keel", "--json", "-k", "2", "--explain"),
        ("search", "harbour", "--max-tokens", "300", "--json"),
        ("search", "湯", "--mode", "lexical"),
        ("search", "salt", "--tag", "sails", "--json"),
        ("search", "keel", "--require-entity", "@ada", "--doc", doc[:9], "--json"),
        ("search", "keel", "--doc", "dffffff"),
        ("search", "nothing of that kind"),
        ("ls", "--limit", "2"),
        ("ls", "--status", "all", "--json"),
        ("ls", "--tag", "sails", "--kind", "file"),
        ("show", doc),
        ("show", passage, "--json"),
        ("show", "d"),
        ("ask", "What is the keel made of?"),
        ("ask", "What is the keel made of?", "--raw"),
        ("similar", doc, "-k", "2"),
        ("similar", "dffffff", "--json"),
        ("entities", "#", "--json"),
        ("facets",),
        ("facets", "--limit", "1", "--json"),
        ("note", "get", "rig/mast.md"),
        ("note", "log"),
        ("note", "ls"),
        ("note", "ls", "--json"),
        ("job", "ls", "--json"),
        ("job", job),
    ]


def test_a_server_prints_what_the_home_does(
    local: dict[tuple[Any, ...], Ran], server: Running
) -> None:
    """Every command's output and exit code are those at home, and so is what it says beside."""
    for args, here in local.items():
        far = there(server, *args)
        assert (far.code, far.out) == (here.code, here.out), args
        assert far.err == here.err or here.code != 0, args


def test_the_socket_gives_what_the_home_does(
    home: Home, local: dict[tuple[Any, ...], Ran], server: Running
) -> None:
    """A search that the server of the home answers is printed to the byte as one without it."""
    searches = {args: here for args, here in local.items() if args[0] == "search"}
    before = answered(server)
    for args, here in searches.items():
        assert home.run(*args) == here, args
    assert answered(server) - before == sum(here.code == 0 for here in searches.values())


def test_a_batch_is_asked_line_by_line(home: Home, server: Running) -> None:
    """One result to a line, and an error line for a bad one, as at home."""
    lines = '{"_id": 1, "text": "oak"}\nnothing\n{"_id": 2, "text": "salt"}\n'
    here = home.run("search", "--batch", "-", stdin=lines)
    far = there(server, "search", "--batch", "-", stdin=lines)
    assert far == here
    assert far.code == 3


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("show", "dffffffff"), 4),
        (("note", "get", "rig/none.md"), 4),
        (("job", "j999999999999"), 4),
        (("show", ""), 2),
        (("add", "--dry-run", "x.md"), 2),
        (("note", "add", " "), 2),
    ],
    ids=str,
)
def test_what_is_wrong_ends_as_at_home(server: Running, args: tuple[str, ...], code: int) -> None:
    """Nothing there is 4, asked wrongly is 2, with a line that says so."""
    ran = there(server, *args)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("kb: ")


@pytest.mark.parametrize("args", [("stats",), ("rm", "d1"), ("note", "undo", "j1")], ids=str)
def test_other_commands_ask_no_server(server: Running, args: tuple[str, ...]) -> None:
    """They say so, and do nothing here either."""
    ran = there(server, *args)
    assert (ran.code, ran.out) == (2, "")
    assert "server" in ran.err


def test_where_the_server_is_named(server: Running, home: Home, tmp_path: Path) -> None:
    """By --server, by KB_SERVER, or by the settings; --home means this machine all the same."""
    url = f"http://127.0.0.1:{server.port}"
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "config.toml").write_text(f'[client]\nserver = "{url}"\n')
    known = home.run("ls", "--json").out
    env = {"XDG_DATA_HOME": str(tmp_path / "none")}
    config = {**env, "XDG_CONFIG_HOME": str(tmp_path)}
    empty = Home(tmp_path / "empty")
    assert run([KB, "ls", "--json"], env=surroundings(**env, KB_SERVER=url)).out == known
    assert run([KB, "ls", "--json"], env=surroundings(**config)).out == known
    assert run(empty.argv("ls", "--json"), env=surroundings(**config)).json["docs"] == []
    off = run([KB, "--server", "", "ls", "--json"], env=surroundings(**config))
    assert off.json["docs"] == []
    for named in (surroundings(**config), surroundings(**env, KB_SERVER=url)):
        refused = run([KB, "stats"], env=named)
        assert (refused.code, refused.out) == (2, "")
        assert "--server ''" in refused.err
    both = run([KB, "--home", "x", "--server", url, "ls"])
    assert (both.code, both.out) == (2, "")


def test_a_project_names_no_server(tmp_path: Path) -> None:
    """What comes with a project cannot send questions, notes and a token elsewhere."""
    (tmp_path / ".kb").mkdir()
    (tmp_path / ".kb" / "config.toml").write_text('[client]\nserver = "http://127.0.0.1:1"\n')
    ran = run([KB, *HASHING, "search", "x"], cwd=tmp_path)
    assert (ran.code, ran.out) == (0, "")
    assert f"client.server comes with the project, and counts only after `kb trust {tmp_path}`" in (
        ran.err
    )


def test_a_strangers_home_here_is_not_told_of(server: Running, home: Home, tmp_path: Path) -> None:
    """Who asks a server opens none, so they are neither warned nor asked to trust it."""
    other = Home(tmp_path / "project" / ".kb")
    (tmp_path / "a.md").write_text("A fox.")
    user = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    assert run(other.argv("add", tmp_path / "a.md"), env=surroundings(**user)).code == 0
    token = {"XDG_DATA_HOME": None, "HOME": str(tmp_path / "else")}
    argv = [KB, "--server", f"http://127.0.0.1:{server.port}", "ls"]
    told = run(argv, env=surroundings(**token), cwd=tmp_path / "project").err
    assert "trust" not in told
    here = run([KB, "ls"], env=surroundings(**token), cwd=tmp_path / "project").err
    assert "kb trust" in here
