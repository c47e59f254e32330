"""`kb config`: what is set where, and changes that are checked before they are written."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import KB, Ran, run, surroundings

from kb.model.config import Settings

Kb = Callable[..., Ran]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The user's settings file; it is not there yet."""
    return tmp_path / "config" / "kb" / "config.toml"


@pytest.fixture
def kb(tmp_path: Path) -> Kb:
    """Runs `kb` for somebody whose folders are empty."""

    def call(*args: object, **env: str | None) -> Ran:
        folders = {name: str(tmp_path / name.lower()) for name in ("HOME", "XDG_CACHE_HOME")}
        folders |= {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA")}
        folders["TMPDIR"] = str(tmp_path / "temporary")
        for name in ("here", "temporary"):
            (tmp_path / name).mkdir(exist_ok=True)
        return run([KB, *map(str, args)], env=surroundings(**folders, **env), cwd=tmp_path / "here")

    return call


def row(ran: Ran, key: str) -> dict[str, Any]:
    (found,) = [row for row in ran.json["settings"] if row["key"] == key]
    return dict(found)


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def test_every_setting_is_listed_with_its_default(kb: Kb, config: Path) -> None:
    """And the files in the order in which they are read, there or not."""
    report = kb("config", "--json").json
    sections = msgspec.to_builtins(Settings())
    defaults = {
        f"{s}.{n}": v for s, names in sections.items() if s != "kb" for n, v in names.items()
    }
    shown = {one["key"]: one["value"] for one in report["settings"]}
    assert shown == {**msgspec.json.decode(msgspec.json.encode(defaults)), "client.token": None}
    assert {one["layer"] for one in report["settings"]} == {"default"}
    home = config.parents[2] / "data" / "kb"
    assert [file["path"] for file in report["files"]] == [
        str(config),
        str(home / "kb.toml"),
        str(home / "config.toml"),
    ]
    assert not any(file["exists"] for file in report["files"])
    assert kb("config", "list", "--json").json == report


def test_a_setting_says_which_layer_sets_it(kb: Kb, config: Path) -> None:
    """A file with its line, KB_CFG, KB_SERVER or an option; the last one counts."""
    home = config.parents[2] / "data" / "kb"
    for file, text in (
        (config, "[search]\n\nrrf_k = 1\n"),
        (home / "kb.toml", "[work]\nthreads = 3\n"),
    ):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    env = {"KB_CFG": "search.mmr_crowd=5", "KB_SERVER": "http://ada:pw@host:1/"}
    ran = kb("--cfg", "search.candidates=9", "config", "list", "--json", **env)
    places = {
        one["key"]: (one["layer"], one["place"], one["value"])
        for one in ran.json["settings"]
        if one["layer"] != "default"
    }
    assert places == {
        "search.rrf_k": ("file", f"{config}:3", 1),
        "work.threads": ("file", f"{home}/kb.toml:2", 3),
        "search.mmr_crowd": ("environment", "KB_CFG", 5),
        "client.server": ("environment", "KB_SERVER", "http://***@host:1/"),
        "search.candidates": ("option", "--cfg", 9),
    }
    shadowed = kb("--cfg", "search.rrf_k=2", "config", "set", "search.rrf_k", 3)
    assert shadowed.out == "search.rrf_k = 2  (--cfg)\n"
    assert shadowed.err == f"kb: {config} sets it, and --cfg counts instead\n"


def test_a_secret_is_never_shown(kb: Kb, config: Path) -> None:
    """Neither by a command nor in an error, and none is taken from the command line."""
    config.parent.mkdir(parents=True)
    config.write_text('[client]\ntoken = "hidden-word"\n')
    rans = [
        kb("config"),
        kb("config", "--json"),
        kb("config", "get", "client.token"),
        kb("config", KB_TOKEN="hidden-word"),
        kb("config", "set", "client.token", "hidden-word"),
        kb("config", "set", "search.rrf_k", "7"),
        kb("config", "set", "search.rrf_k", "x"),
        kb("config", "edit", EDITOR=script(config.parent / "ed", 'echo no >> "$1"')),
    ]
    assert [ran.code for ran in rans] == [0, 0, 6, 0, 2, 0, 2, 2]
    assert not any("hidden-word" in ran.out + ran.err for ran in rans)
    assert f"set by {config}:2" in rans[2].err


def test_a_change_keeps_comments_order_mode_and_links(kb: Kb, config: Path) -> None:
    """A file that is a link into somebody's dotfiles stays one."""
    dotfiles = config.parents[2] / "dotfiles.toml"
    dotfiles.write_text("# mine\n[search]\nrrf_k = 1  # why\n\n[work]\nthreads = 3\n")
    dotfiles.chmod(0o640)
    config.parent.mkdir(parents=True)
    config.symlink_to(dotfiles)
    ran = kb("config", "set", "search.rrf_k", 70)
    assert (ran.code, ran.out) == (0, f"search.rrf_k = 70  ({config}:3)\n"), ran.err
    assert kb("config", "unset", "work.threads").code == 0
    assert dotfiles.read_text() == "# mine\n[search]\nrrf_k = 70  # why\n\n[work]\n"
    assert config.is_symlink()
    assert dotfiles.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(config.parent)) == ["config.toml"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("serch.rrf_k", "3"), "unknown setting serch.rrf_k; did you mean search.rrf_k?"),
        (
            ("search.rrf_k", "many"),
            "kb: search.rrf_k must be a whole number of at least 1, not 'many'",
        ),
        (("search.rrf_k", "0"), "search.rrf_k must be a whole number of at least 1, not 0"),
        (
            ("chunk.tokens_max", "64"),
            "chunk: overlap_tokens (32) is over a quarter of tokens_max (64)",
        ),
        (
            ("kb.topic.style.index", "true"),
            "kb.topic.style.subjects is missing; set it to the folder",
        ),
    ],
)
def test_what_kb_would_refuse_is_not_written(
    kb: Kb, config: Path, args: tuple[str, str], message: str
) -> None:
    """Also where only all layers together are wrong; there is no file then."""
    ran = kb("config", "set", *args)
    assert ran.code == 2
    assert message in ran.err
    assert not config.exists()


def test_text_that_looks_like_a_number_is_text_where_text_is_wanted(kb: Kb, config: Path) -> None:
    """So that nobody has to quote twice."""
    assert kb("config", "set", "llm.model", "7").code == 0
    assert kb("config", "set", "fetch.allow", '["a.org", "b.org"]').code == 0
    assert kb("config", "get", "llm.model").out == "7\n"
    assert kb("config", "get", "fetch.allow").out == '["a.org","b.org"]\n'
    assert config.read_text() == '[llm]\nmodel = "7"\n\n[fetch]\nallow = ["a.org", "b.org"]\n'


def test_the_homes_file_is_changed_on_request(kb: Kb, config: Path, tmp_path: Path) -> None:
    """That one of the home's two files that sets it already, else kb.toml."""
    home = tmp_path / "other"
    assert kb("--home", home, "config", "set", "search.rrf_k", 5, "--in", "home").code == 0
    assert (home / "kb.toml").read_text() == "[search]\nrrf_k = 5\n"
    (home / "config.toml").write_text("[search]\nrrf_k = 6\n")
    assert kb("--home", home, "config", "set", "search.rrf_k", 7, "--in", "home").code == 0
    assert (home / "config.toml").read_text() == "[search]\nrrf_k = 7\n"
    assert not config.exists()
    assert kb("--home", home, "config", "unset", "work.threads", "--in", "home").code == 2


def test_a_projects_setting_says_that_it_does_not_count_yet(kb: Kb, tmp_path: Path) -> None:
    """What a project's file sets counts once the user trusts it."""
    home = tmp_path / "project" / ".kb"
    home.mkdir(parents=True)
    ran = kb("--home", home, "config", "set", "llm.model", "x", "--in", "home")
    assert ran.code == 0, ran.err
    assert ran.out == 'llm.model = ""\n'
    assert "counts only after `kb trust" in ran.err
    listed = kb("--home", home, "config", "--json").json
    assert {"path": str(home / "kb.toml"), "exists": True, "trusted": False} in listed["files"]


def test_an_edit_is_checked_before_it_is_kept(kb: Kb, config: Path, tmp_path: Path) -> None:
    """A text with an error does not replace the file, and is not lost."""
    good = script(tmp_path / "good", 'printf "[search]\\nrrf_k = 9\\n" > "$1"')
    bad = script(tmp_path / "bad", 'echo "rrf_k = [" >> "$1"')
    assert kb("config", "edit", VISUAL=good).out == f"{config}: written\n"
    assert config.stat().st_mode & 0o777 == 0o600
    ran = kb("config", "edit", VISUAL=bad)
    assert ran.code == 2
    assert config.read_text() == "[search]\nrrf_k = 9\n"
    kept = Path(ran.err.rstrip().rpartition(" ")[2])
    assert kept.read_text() == "[search]\nrrf_k = 9\nrrf_k = [\n"
    assert kb("config", "edit", VISUAL="true").out == f"{config}: as it was\n"
    assert kb("config", "edit", VISUAL=None, EDITOR=None).code == 1


def test_an_editor_that_fails_leaves_no_copy_behind(kb: Kb, config: Path, tmp_path: Path) -> None:
    """The settings may hold a token."""
    config.parent.mkdir(parents=True)
    config.write_text('[client]\ntoken = "hidden-word"\n')
    ran = kb("config", "edit", VISUAL="false")
    assert (ran.code, ran.err) == (1, "kb: false ended with exit code 1\n")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_file_that_is_wrong_can_be_edited(kb: Kb, config: Path, tmp_path: Path) -> None:
    """Else nobody could mend it by the command; `set` leaves it alone."""
    config.parent.mkdir(parents=True)
    config.write_text("[search\n")
    refused = kb("config", "set", "search.rrf_k", 9)
    assert (refused.code, config.read_text()) == (2, "[search\n")
    good = script(tmp_path / "good", 'printf "[search]\\nrrf_k = 9\\n" > "$1"')
    assert kb("config", "edit", VISUAL=good).code == 0
    assert kb("config", "get", "search.rrf_k").out == "9\n"


def test_a_file_that_changes_during_an_edit_is_not_overwritten(
    kb: Kb, config: Path, tmp_path: Path
) -> None:
    """Whoever wrote it meanwhile keeps what they wrote."""
    both = f'printf "[work]\\nthreads = 3\\n" | tee "$1" > {config}; echo "# x" >> "$1"'
    config.parent.mkdir(parents=True)
    ran = kb("config", "edit", VISUAL=script(tmp_path / "both", both))
    assert ran.code == 2
    assert "changed meanwhile" in ran.err
    assert config.read_text() == "[work]\nthreads = 3\n"


def test_the_folders_are_those_that_kb_uses(kb: Kb, config: Path, tmp_path: Path) -> None:
    """After work, everything outside the project lies in a folder that was named."""
    folders = kb("config", "path", "--json").json
    assert folders["config"] == str(config.parent)
    assert kb("config", "set", "embed.kind", "hashing").code == 0
    assert kb("add", "-", "--title", "Tea").code != 5
    assert kb("token", "own").code == 0
    assert kb("guide", "what is a home?").code in (0, 4, 6)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    named = tuple(map(Path, folders.values()))
    assert written
    assert [path for path in written if not any(path.is_relative_to(one) for one in named)] == []
