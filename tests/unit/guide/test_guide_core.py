"""What kb says of itself is well formed, and its commands are there."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from kb_cli.main import kb

from kb.knowledge.entries import Entry, parse
from kb.knowledge.guide.core import CoreEntry, core_digest, core_entries

ENTRIES = core_entries()
IDS = {entry.zettel_id for entry in ENTRIES}


def read(entry: CoreEntry) -> Entry:
    said = parse(entry.data.decode())
    assert isinstance(said, Entry)
    return said


def commands() -> Iterator[tuple[str, str]]:
    """Every command line in the entries, and where it stands."""
    for entry in ENTRIES:
        text = entry.data.decode()
        spans = re.findall(r"`(kb [^`]+)`", text)
        blocks = [line.partition("kb ") for line in re.findall(r"(?m)^    .*\bkb .*$", text)]
        for line in (*spans, *(mark + rest for _, mark, rest in blocks)):
            yield entry.zettel_id, " ".join(line.partition(">")[0].split())


def called(line: str) -> None:
    """Have the command line's own parser read it; raises UsageError where it does not."""
    words = [word for word in shlex.split(line)[1:] if word not in ("--help", "COMMAND")]
    context = kb.make_context("kb", words, obj={})
    command: click.Command = kb
    while isinstance(command, click.Group) and context._protected_args + context.args:
        rest = context._protected_args + context.args
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        context, command = found.make_context(name, rest, parent=context), found


def test_there_are_enough_and_they_name_each_other() -> None:
    """At least eight, ids by file name, every reference answered, every entry referred to."""
    referred = {target for entry in ENTRIES for target in read(entry).meta.references}
    assert len(ENTRIES) >= 8
    assert referred == IDS


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.zettel_id)
def test_an_entry_is_short_and_in_sections(entry: CoreEntry) -> None:
    """100 to 300 words in at least three sections, under one heading, in lines of 100."""
    body = entry.data.decode().split("---\n", 2)[2]
    assert 100 <= len(body.split()) <= 300
    assert len(re.findall(r"(?m)^## ", body)) >= 3
    assert len(re.findall(r"(?m)^# ", body)) == 1
    assert max(map(len, body.splitlines())) <= 100


def at_fault(line: str) -> object:
    """The parameter that the parser does not take as it is; None where it takes all."""
    try:
        called(line)
    except click.BadParameter as error:
        return error.param
    return None


@pytest.mark.parametrize(("place", "line"), sorted(set(commands())))
def test_a_command_that_is_named_is_there(place: str, line: str) -> None:
    """The parser reads its name and options; what an argument says need not be there."""
    assert not isinstance(at_fault(line), click.Option), place


@pytest.mark.parametrize("line", ["kb serch x", "kb add --recursiv x", "kb backup mak"])
def test_a_wrong_command_is_noticed(line: str) -> None:
    """A name or option that is not there fails."""
    with pytest.raises(click.UsageError):
        called(line)


def test_every_file_of_the_folder_ships() -> None:
    """No file lies there that is no entry, and the digest names them all."""
    folder = Path(__file__).parents[3] / "kb/knowledge/guide/core"
    assert {path.stem for path in folder.iterdir()} == IDS
    assert re.fullmatch(r"[0-9a-f]{64}", core_digest())
