"""What the help of each command says, and that its example is one."""

import inspect
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from commands import KB, run, surroundings
from kb_cli.examples import EXAMPLES
from kb_cli.main import COMMANDS, kb

GOLDEN = Path(__file__).with_name("help.txt")


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its words."""
    context = click.Context(kb)
    for name in COMMANDS:
        command = kb.get_command(context, name)
        assert command is not None
        if not isinstance(command, click.Group):
            yield name, command
            continue
        if command.invoke_without_command:
            yield name, command
        for inner, found in command.commands.items():
            yield f"{name} {inner}", found


def transcript() -> str:
    """The help of every command, one after the other."""
    parts = []
    for name in ("", *(name for name, _ in commands())):
        said = run([KB, *name.split(), "--help"], env={**surroundings(), "COLUMNS": "80"})
        assert said.code == 0
        parts.append(f"$ kb {name} --help\n{said.out}")
    return "\n".join(parts)


def test_the_help_is_the_one_that_was_agreed_on() -> None:
    """Word for word. To change it on purpose, write `transcript()` to the file."""
    assert transcript() == GOLDEN.read_text("utf-8")


def test_no_example_is_of_something_else() -> None:
    """Every one is of a command."""
    assert set(EXAMPLES) <= {name for name, _ in commands()}


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_an_example_is_understood(name: str) -> None:
    """Every command has one, and takes its options and arguments."""
    example = (dict(commands())[name].epilog or "").partition("Example: ")[2]
    words = shlex.split(example.partition(" > ")[0])
    assert words[: 1 + len(name.split())] == ["kb", *name.split()]
    command = dict(commands())[name]
    command.make_context(name, words[1 + len(name.split()) :], obj={}, resilient_parsing=False)


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_a_command_takes_what_its_options_give(name: str) -> None:
    """The names of its parameters are those that its function has."""
    command = dict(commands())[name]
    assert command.callback is not None
    taken = inspect.signature(inspect.unwrap(command.callback)).parameters.values()
    given = {param.name for param in command.params if param.expose_value}
    names = {param.name for param in taken if param.kind != param.VAR_KEYWORD} - {"ctx"}
    takes_all = any(param.kind == param.VAR_KEYWORD for param in taken)
    assert names <= given
    assert takes_all or given <= names
