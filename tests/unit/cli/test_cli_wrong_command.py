"""What is said of a command that kb does not have."""

import importlib

import click
from kb_cli.main import COMMANDS, DERIVED, kb
from kb_cli.synonyms import ALIKE, DONE_BY, SYNONYMS
from kb_cli.wrong_command import GROUPS, sentence_of


def test_every_group_is_looked_into() -> None:
    """Whoever types a command of a group alone is told of the group."""
    modules = {
        name: importlib.import_module(f"kb_cli.{name.replace('-', '_')}")
        for name in COMMANDS
        if name not in DERIVED
    }
    groups = [name for name, module in modules.items() if isinstance(module.command, click.Group)]
    assert sorted(groups) == sorted(GROUPS)


def test_each_word_leads_to_a_command() -> None:
    """No row of words is without a command, and no command is called by another one's name."""
    ctx = click.Context(kb)
    inner = {
        name
        for group in GROUPS
        if isinstance(command := kb.get_command(ctx, group), click.Group)
        for name in command.commands
    }
    for words in ALIKE:
        assert any(word in COMMANDS for word in words), words
        for word in words:
            others = [name for name in words if name in COMMANDS]
            assert word not in COMMANDS or others == [word], words
            assert word in inner | set(SYNONYMS) | set(COMMANDS) or "did you mean" in sentence_of(
                word, COMMANDS
            )
    assert not set(DONE_BY) & (set(COMMANDS) | set(SYNONYMS))
