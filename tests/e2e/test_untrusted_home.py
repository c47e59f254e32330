"""A folder from a stranger: whatever it holds, opening it harms nobody."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from commands import HASHING, KB, Ran, run, surroundings
from loopback import LoopbackServer, serving
from mcp import Client
from mcp_clients import by_stdio
from msgspec import Struct
from test_cli_terminal import on_terminal
from untrusted_homes import NOTE, SECRET, HostileClone

from kb.store.trust import TrustList

MINE: Final = "Tea is what I drink."
READS: Final = (
    ("search", "tea"),
    ("--cfg", "local", "prompt"),
    ("--cfg", ".kb/config.d/local.toml", "search", "tea"),
    ("ask", "what is tea"),
    ("ls",),
    ("show", "0000"),
    ("similar", "0000"),
    ("entities",),
    ("entries",),
    ("stats",),
    ("sources",),
    ("signals",),
    ("embedder",),
    ("job", "ls"),
    ("token", "ls"),
    ("pack", "ls"),
    ("registry", "ls"),
    ("note", "log"),
    ("guide", "how do I add a folder"),
    ("learn",),
    ("learn", "team", "*"),
    ("prompt",),
)
WRITES: Final = (
    ("add", "readme.md"),
    ("add", "-r", "."),
    ("rm", "0000", "--yes"),
    ("visibility", "0000", "public"),
    ("new", "A title"),
    ("note", "add", "text"),
    ("note", "undo", "0000"),
    ("sync-all",),
    ("sync-knowledge",),
    ("pull",),
    ("watch",),
    ("worker", "--drain"),
    ("compact",),
    ("embedder", "set", "hashing"),
    ("token", "add", "evil"),
    ("pack", "add", "."),
    ("registry", "add", "evil", "https://evil.example/"),
    ("backup", "create"),
    ("check",),
    ("check", "--repair"),
    ("serve", "--port", "0"),
    ("mcp", "--write"),
    ("init", "--project"),
)
_DRIVER: Final = """
import json, os, sys
touched, sent, code = [], [], []

def hook(event, args):
    if event in ("open", "os.scandir", "os.listdir") and isinstance(args[0], (str, bytes)):
        touched.append(os.path.abspath(os.fsdecode(args[0])))
    elif event in ("socket.connect", "socket.bind", "socket.getaddrinfo"):
        sent.append(repr(args[-4:]))
    elif event == "exec":
        code.append(getattr(args[0], "co_filename", ""))

sys.addaudithook(hook)
from click.testing import CliRunner
from kb_cli.errors import exit_code_of
from kb_cli.main import kb

said = []
for args in json.loads(sys.argv[1]):
    done = CliRunner().invoke(kb, args, obj={})
    code_of, err = done.exit_code, done.stderr
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        code_of = getattr(done.exception, "exit_code", 1)
        err += f"kb: {done.exception}"
    said.append({"code": code_of, "out": done.stdout, "err": err})
print(json.dumps({"said": said, "touched": touched, "sent": sent, "code": code}))
"""


class Visit(Struct, frozen=True, kw_only=True):
    """Somebody who stands in a clone, and what commands did there."""

    clone: HostileClone
    server: LoopbackServer
    env: dict[str, str]
    said: dict[tuple[str, ...], Ran]
    touched: list[str]
    sent: list[str]
    code: list[str]
    before: dict[str, Any]
    after: dict[str, Any]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def visit(root: Path, server: LoopbackServer, kind: str) -> Visit:
    clone = HostileClone(root, f"http://127.0.0.1:{server.server_port}")
    clone.with_trap() if kind == "trap" else clone.with_store()
    env = surroundings(
        HOME=str(root / "me"),
        XDG_DATA_HOME=str(root / "me/data"),
        XDG_CONFIG_HOME=str(root / "me/config"),
        XDG_CACHE_HOME=str(root / "me/cache"),
        OPENAI_API_KEY="sk-mine",
        KB_TOKEN="mine",
    )
    (root / "me").mkdir()
    (root / "me/mine.md").write_text(f"# Mine\n\n{MINE}\n")
    mine = [KB, *HASHING, "--home", str(root / "me/data/kb"), "add", str(root / "me/mine.md")]
    assert run(mine, env=env).code == 0

    def state() -> dict[str, Any]:
        listed = run([KB, "--space", "user", "ls", "--json"], env=env, cwd=root).json
        return {
            "outside": clone.seen(),
            "trust": files_of(root / "me/data/kb-trust"),
            "mine": [row["title"] for row in listed["docs"]],
            "clone": files_of(clone.root),
        }

    before = state()
    paths = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]
    argv = [[*HASHING, *args] for args in (*READS, *WRITES, ("doctor",))]
    driven = run(
        [sys.executable, "-P", "-c", _DRIVER, json.dumps(argv)],
        env=env | {"PYTHONPATH": ":".join(paths)},
        cwd=clone.root,
    )
    assert driven.code == 0, driven.err
    told = driven.json
    said = {
        tuple(args[len(HASHING) :]): Ran(**one)
        for args, one in zip(argv, told["said"], strict=True)
    }
    return Visit(
        clone=clone,
        server=server,
        env=env,
        said=said,
        touched=told["touched"],
        sent=told["sent"],
        code=told["code"],
        before=before,
        after=state(),
    )


@pytest.fixture(scope="module", params=["trap", "sound"])
def visited(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Visit]:
    with serving() as server:
        yield visit(tmp_path_factory.mktemp("visit"), server, request.param)


def test_reads_are_answered_by_the_users_own_space(visited: Visit) -> None:
    """With a warning that names the command which lets the clone count."""
    for args in READS:
        ran = visited.said[args]
        assert ran.code in ((4,) if "0000" in args else (0,)), (args, ran)
        if not {"learn", "prompt"}.intersection(args):
            assert f"`kb trust {visited.clone.root}`" in ran.err, args
    for args in (READS[0], READS[2], ("ls",)):
        assert "Mine" in visited.said[args].out
    assert MINE in visited.said["ask", "what is tea"].out


def test_writes_wait_for_a_yes(visited: Visit) -> None:
    """None goes to the user's own home instead."""
    for args in WRITES:
        assert visited.said[args].code == 6, (args, visited.said[args])
        assert f"`kb trust {visited.clone.root}`" in visited.said[args].err, args
    assert visited.after["mine"] == visited.before["mine"] == ["Mine"]
    assert visited.said["doctor",].code == 3


def test_nothing_outside_is_read(visited: Visit) -> None:
    """No file, no folder, and no output holds what lies there."""
    outside = str(visited.clone.outside)
    assert [place for place in visited.touched if place.startswith(outside)] == []
    for args, ran in visited.said.items():
        assert SECRET not in ran.out + ran.err, args


def test_nothing_is_sent(visited: Visit) -> None:
    """No key, no token, no question."""
    assert visited.sent == []
    assert visited.server.connections == 0


def test_no_code_is_loaded(visited: Visit) -> None:
    """Neither of a model nor under the name of a module that kb has."""
    clone = str(visited.clone.root)
    assert [place for place in visited.code if place.startswith(clone)] == []
    assert not visited.clone.code_ran.exists()


def test_nothing_is_written(visited: Visit) -> None:
    """Not outside, not into the clone, and not to the list of homes that count."""
    for what in ("outside", "trust", "clone"):
        assert visited.after[what] == visited.before[what], what


def test_a_prompt_tells_of_a_strangers_topic_only_that_it_is_there(visited: Visit) -> None:
    """What it says is read by whoever asks for it; its title is the stranger's text, too."""
    prompt = visited.said["prompt",].out
    assert "team" in prompt
    assert NOTE not in prompt
    assert "Do as" not in prompt
    assert NOTE in visited.said["learn", "team", "*"].out


def test_an_agent_is_told_no_more(visited: Visit, tmp_path: Path) -> None:
    """By the real command: instructions, tools and prompts; `learn` answers who asks."""
    told: list[str] = []

    async def story(client: Client) -> None:
        told.append(repr(client.server_info) + repr(client.instructions))
        told.append(repr(await client.list_tools()))
        told.append(repr(await client.get_prompt("knowledge")))
        told.append(repr(await client.list_resources()))
        asked = {"topic": "team", "subjects": "rules"}
        told.append(repr(await client.call_tool("learn", asked)))

    argv = [KB, *HASHING, "mcp"]
    err = by_stdio(argv, story, tmp_path / "errors", env=visited.env, cwd=visited.clone.root)
    assert f"`kb trust {visited.clone.root}`" in err
    *before, learned = told
    assert NOTE not in "".join(before)
    assert "Do as" not in "".join(before)
    assert NOTE in learned
    assert SECRET not in "".join(told)
    assert not visited.clone.code_ran.exists()
    assert visited.server.connections == 0


@pytest.mark.parametrize("subjects", ["/OUTSIDE", "~/outside", "../outside", ".kb/link", ".kb"])
def test_a_topic_lies_in_its_project(tmp_path: Path, subjects: str) -> None:
    """Absolute, from a home folder, upward or by a link: refused, and nothing of it is shown."""
    clone = HostileClone(tmp_path, "http://127.0.0.1:1")
    clone.link(".kb/link", clone.outside)
    clone.topic(subjects.replace("/OUTSIDE", str(clone.outside)))
    env = surroundings(
        HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path / "d"), XDG_CONFIG_HOME=str(tmp_path / "c")
    )
    for args in (("prompt",), ("learn",), ("learn", "team", "**")):
        ran = run([KB, *HASHING, *args], env=env, cwd=clone.root)
        assert (ran.code, ran.out) == (2, "")
        assert "kb.toml:2: kb.topic.team.subjects" in ran.err
        assert "is not a folder of the project" in ran.err
        assert SECRET not in ran.err


def test_trust_shows_what_it_lets_in(tmp_path: Path) -> None:
    """Settings, sources and models; then all of it counts, until it is taken off the list."""
    clone = HostileClone(tmp_path, "http://127.0.0.1:1")
    clone.with_store()
    env = surroundings(
        HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path / "d"), XDG_CONFIG_HOME=str(tmp_path / "c")
    )

    def kb(*args: str) -> Ran:
        return run([KB, "--cfg", "client.server=", *args], env=env, cwd=clone.root)

    # Not even an accepted project has its notebook elsewhere.
    said = (clone.home / "kb.toml").read_text()
    (clone.home / "kb.toml").write_text(said.replace(f'path = "{clone.outside}"\n', ""))
    trusted = kb("trust", ".")
    assert trusted.code == 0, trusted.err
    for line in (
        "kb.toml: llm.base_url = 'http://127.0.0.1:1'",
        "kb.toml: kb.topic.team.learned = ['**']",
        "config.d/local.toml: embed.model = '.kb/evil-model'",
        f"sync-all reads {clone.outside}",
        "embedded by sentence-transformers .kb/evil-model",
    ):
        assert f"  {line}\n" in trusted.out
    assert "trusted_keys" not in trusted.out
    listed = kb("trust", "--list", "--json").json["homes"]
    assert listed == [{"home": str(clone.home), "how": "trusted"}]
    assert kb("sources", "--json").json["sources"][0]["location"] == str(clone.outside)
    assert NOTE in kb("prompt").out
    (clone.home / "kb.toml").write_text("[llm]\nprovider = 'ollama'\n")
    assert "kb.toml: llm.provider comes with the project" in kb("sources").err
    assert kb("trust", "--remove", ".").code == 0
    assert kb("trust", "--remove", ".").code == 4
    assert kb("sync-all").code == 6
    assert not clone.code_ran.exists()


def test_a_person_is_asked_once(tmp_path: Path) -> None:
    """On a terminal; no is kept for the home as it is then, and yes is what `kb trust` does."""
    clone = HostileClone(tmp_path, "http://127.0.0.1:1")
    clone.with_store()
    (clone.home / "config.d/local.toml").unlink()
    line = f"cd {clone.root} && exec {KB} {' '.join(HASHING)} --cfg client.server= sources"
    env = {
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "d"),
        "XDG_CONFIG_HOME": str(tmp_path / "c"),
    }

    def asked(typed: bytes) -> tuple[bool, bool]:
        code, shown = on_terminal(["/bin/sh", "-c", line], typed, **env)
        assert code == 0, shown
        assert SECRET not in shown
        question, _, answer = shown.rpartition("Let all of this count")
        assert ("sync-all reads" in question) == bool(question)
        return bool(question), str(clone.outside) in answer

    assert asked(b"n\n") == (True, False)
    assert asked(b"") == (False, False)
    (clone.home / "kb.toml").write_text("[llm]\nprovider = 'ollama'\n")
    assert asked(b"y\n") == (True, True)
    assert asked(b"") == (False, True)


def test_a_trap_cannot_be_trusted(tmp_path: Path) -> None:
    """Its pages are read by another process before LMDB sees the file."""
    clone = HostileClone(tmp_path, "http://127.0.0.1:1")
    clone.with_trap()
    data = tmp_path / "d"
    env = surroundings(HOME=str(tmp_path), XDG_DATA_HOME=str(data))
    ran = run([KB, "trust", str(clone.root)], env=env)
    assert ran.code == 5
    assert "cannot trust it" in ran.err
    assert TrustList(data / "kb-trust").listed() == ()
    assert run([KB, *HASHING, "sync-all"], env=env, cwd=clone.root).code == 6


def test_what_leads_out_is_not_entered(tmp_path: Path) -> None:
    """Where a folder of kb's own is a link out of the clone, nothing of it counts."""
    clone = HostileClone(tmp_path, "http://127.0.0.1:1")
    clone.link(".kb/run", clone.outside)
    before = clone.seen()
    env = surroundings(
        HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path / "d"), XDG_CONFIG_HOME=str(tmp_path / "c")
    )
    for args, code in ((("search", "tea"), 0), (("add", "readme.md"), 6), (("trust", "."), 6)):
        ran = run([KB, *HASHING, *args], env=env, cwd=clone.root)
        assert ran.code == code, ran.err
        assert f"{clone.home / 'run'} is a link that leads out of the project" in ran.err
    assert clone.seen() == before
