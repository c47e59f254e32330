"""`kb completion`: what real shells complete."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import KB, TIMEOUT_S, Home, run, surroundings

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PS1='> '"),
    "zsh": (["zsh", "-f", "-i"], "PS1='> '; autoload -U compinit; compinit -u -D"),
}


def env(**changes: str) -> dict[str, str]:
    """An environment in which `kb` is the one under test."""
    path = f"{Path(KB).parent}{os.pathsep}{os.environ['PATH']}"
    return surroundings(PATH=path, TERM="dumb", **changes)


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")


def completions(*words: str, cwd: Path | None = None) -> list[str]:
    """What the script of bash gets for a line whose last word is being typed."""
    line = {"_KB_COMPLETE": "bash_complete", "COMP_WORDS": "\n".join(("kb", *words))}
    ran = run([KB], env=env(**line, COMP_CWORD=str(len(words))), cwd=cwd)
    assert ran.err == ""
    return ran.out.split()


class Typist:
    """Somebody who types into a shell that runs on a terminal."""

    def __init__(self, argv: list[str], cwd: Path) -> None:
        self.seen = ""
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env(HOME=str(cwd)))
        self.pid = pid

    def type(self, keys: str, expected: str) -> None:
        """Type, and wait until the terminal shows something."""
        os.write(self.fd, keys.encode())
        self.seen, deadline = "", time.monotonic() + TIMEOUT_S
        while expected not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.fd], [], [], 1)[0]:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")

    def leave(self) -> None:
        """Close the terminal, which ends the shell."""
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_a_command_its_options_and_their_values(
    shell: str, tmp_path: Path
) -> None:
    """Typed with the Tab key on a terminal, by the script as it is printed."""
    needs(shell)
    argv, setup = SHELLS[shell]
    typist = Typist(argv, tmp_path)
    typist.type(f'{setup}; eval "$(kb completion {shell})"; echo rea""dy\n', "ready")
    typist.type("kb doct\t", "kb doctor ")
    typist.type("--js\t", "--json ")
    typist.type("\x15kb --space us\t", "user")
    typist.leave()


def test_fish_completes_a_command_its_options_and_their_values(tmp_path: Path) -> None:
    """As fish itself says that it would."""
    needs("fish")
    said = [
        subprocess.run(
            ["fish", "--private", "-c", f"kb completion fish | source; complete -C '{line}'"],
            env=env(HOME=str(tmp_path)),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        for line in ("kb doct", "kb doctor --js", "kb --space us")
    ]
    assert [one.stdout.split()[:1] for one in said] == [["doctor"], ["--json"], ["user"]]


def test_commands_are_completed_without_a_look_into_them() -> None:
    """No command's module is loaded."""
    code = """
import atexit, sys
from kb_cli.main import main
def told():
    print(*sorted(n for n in sys.modules if n.startswith(("kb.", "kb_cli."))), flush=True)
atexit.register(told)
main()
"""
    line = {"_KB_COMPLETE": "bash_complete", "COMP_WORDS": "kb s", "COMP_CWORD": "1"}
    ran = run([sys.executable, "-c", code], env=env(**line))
    *_, modules = ran.out.splitlines()
    assert "plain,search" in ran.out
    known = {"kb.errors", "kb_cli.completing", "kb_cli.errors", "kb_cli.main", "kb_cli.output"}
    assert set(modules.split()) <= known


def test_topics_and_packs_are_completed_by_name(tmp_path: Path) -> None:
    """Those of the home that the line names; what a shell would expand is left out."""
    home = Home(tmp_path / "home")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.md").write_text("# A\n\nText.\n")
    pack = tmp_path / "pack"
    shutil.copytree(tmp_path / "texts", pack)
    built = home.run("pack", "build", pack, "--id", "house-rules")
    assert built.code == 0, built.err
    assert home.run("pack", "add", pack).code == 0
    (home.root / "kb.toml").write_text(
        f'[kb.topic.style]\nsubjects = "{tmp_path}/texts"\n'
        f'[kb.topic.off]\nenable = false\nsubjects = "{tmp_path}/texts"\n'
    )
    words = ("--home", str(home.root))
    assert completions(*words, "learn", "") == ["plain,style"]
    assert completions(*words, "pack", "show", "") == ["plain,house-rules"]
    assert completions(*words, "search", "--pack", "ho") == ["plain,house-rules"]
    assert completions("add", "no") == ["file,no"]


def test_settings_and_their_values_are_completed() -> None:
    """Names of settings, and values where they are a few words."""
    assert completions("config", "set", "search.f") == [
        "plain,search.fusion",
        "plain,search.feedback_passages",
        "plain,search.feedback_weight",
    ]
    assert completions("config", "get", "llm.prov") == ["plain,llm.provider"]
    assert completions("config", "set", "search.fusion", "") == ["plain,spaced", "plain,plain"]
    assert completions("config", "set", "fetch.robots", "f") == ["plain,false"]
    assert completions("config", "set", "search.rrf_k", "") == []
    assert completions("config", "set", "no.such", "") == []


def test_a_line_that_cannot_be_completed_shows_nothing(tmp_path: Path) -> None:
    """No error and no question gets between what somebody types."""
    (tmp_path / "kb.toml").write_text("no = [toml")
    for words in (
        ("nosuch", ""),
        ("--home", str(tmp_path), "learn", ""),
        ("--home", str(tmp_path), "pack", "show", ""),
        ("--cfg", "bad.key=1", "learn", ""),
    ):
        assert completions(*words, cwd=tmp_path) == []


def test_what_a_home_has_is_completed(tmp_path: Path) -> None:
    """Ids of docs with their titles, tags, sources, notes, backups and tokens."""
    home = Home(tmp_path / "home")
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.md").write_text("---\ntags: [house/roof, garden]\n---\n# A\n\nText.\n")
    assert home.run("add", folder).code == 0
    assert home.run("note", "add", "--wait", "--hint", "kitchen", "# Soup\n\nSalt.").code == 0
    assert home.run("backup", "create").code == 0
    assert home.run("token", "add", "laptop").code == 0
    (name,) = (row["name"] for row in home.run("backup", "list", "--json").json["backups"])
    doc = home.ids()["a.md"]
    words = ("--home", str(home.root), "--cfg", "embed.kind=hashing")

    def completed(*more: str) -> list[str]:
        return completions(*words, *more)

    assert f"plain,{doc[:9]}" in completed("ls", "--doc", "")
    assert completed("show", doc[:4]) == [f"file,{doc[:4]}", f"plain,{doc[:9]}"]
    assert completed("rm", doc[:12]) == [f"file,{doc[:12]}", f"plain,{doc[:12]}"]
    assert completed("show", "do") == ["file,do"]
    assert completed("search", "--tag", "g") == ["plain,garden"]
    assert completed("ls", "--tag", "house") == ["plain,house/roof"]
    assert f"plain,{folder}" in completed("search", "--source", "")
    assert completed("sources", "rm", f"{folder}")[1:] == [f"plain,{folder}"]
    assert completed("note", "get", "") == ["plain,kitchen/soup.md"]
    assert completed("backup", "restore", "") == [f"plain,{name}"]
    assert completed("token", "rm", "") == ["plain,laptop"]
    assert completed("job", "") == []
