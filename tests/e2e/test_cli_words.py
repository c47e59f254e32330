"""What people type first: words without quotes, other names of commands, a group alone."""

from pathlib import Path

import pytest
from commands import HASHING, KB, run, surroundings


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A home with one doc."""
    (tmp_path / "boiler.md").write_text("# Boiler\n\nThe boiler quote of Lian is 900 francs.\n")
    env = surroundings(KB_HOME=str(tmp_path / "home"))
    assert run([KB, *HASHING, "add", str(tmp_path / "boiler.md")], env=env).code == 0
    return env


@pytest.mark.parametrize("command", ["search", "ask"])
def test_all_words_are_the_query(env: dict[str, str], command: str) -> None:
    """Quoted or not, the answer has the same bytes."""
    quoted = run([KB, *HASHING, command, "boiler quote lian"], env=env)
    plain = run([KB, *HASHING, command, "boiler", "quote", "lian"], env=env)
    assert (plain.code, plain.out) == (0, quoted.out)
    assert "Lian" in plain.out


def test_an_unknown_option_is_no_word_of_the_query(env: dict[str, str]) -> None:
    """It is an error that names the nearest option; behind -- it is a word."""
    refused = run([KB, *HASHING, "search", "boiler", "--jsno"], env=env)
    assert refused.code == 2
    assert "--json" in refused.err
    assert run([KB, *HASHING, "search", "--", "boiler", "--jsno"], env=env).code == 0


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["find", "boiler"], ["search", "boiler"]),
        (["list"], ["ls"]),
        (["version"], ["--version"]),
        (["help"], ["--help"]),
        (["help", "note", "add"], ["note", "add", "--help"]),
        (["-v", "help", "add"], ["-v", "add", "--help"]),
    ],
)
def test_a_synonym_does_what_it_means(
    env: dict[str, str], typed: list[str], meant: list[str]
) -> None:
    """The same bytes as the command itself."""
    by_synonym, by_name = run([KB, *HASHING, *typed], env=env), run([KB, *HASHING, *meant], env=env)
    assert (by_synonym.code, by_synonym.out) == (0, by_name.out)


@pytest.mark.parametrize(("typed", "near"), [("serach", "search"), ("remove", "rm")])
def test_another_name_is_suggested(env: dict[str, str], typed: str, near: str) -> None:
    """A misspelt one, and one that would remove something."""
    refused = run([KB, *HASHING, typed, "boiler"], env=env)
    assert refused.code == 2
    assert f"no command '{typed}'; did you mean '{near}'" in refused.err


@pytest.mark.parametrize("group", ["pack", "note", "registry", "backup", "token"])
def test_a_group_alone_prints_its_commands(env: dict[str, str], group: str) -> None:
    """To standard output, as its help does, and it is no error."""
    alone, helped = (
        run([KB, *HASHING, group], env=env),
        run([KB, *HASHING, group, "--help"], env=env),
    )
    assert (alone.code, alone.out, alone.err) == (0, helped.out, "")
