"""What to say of a command that kb, or a group of its commands, does not have."""

import difflib
from collections.abc import Collection
from typing import Final

from kb_cli.synonyms import ALIKE

_NEAR: Final = 0.6


def sentence_of(name: str, commands: Collection[str], others: Collection[str] = ()) -> str:
    """That there is no such command, and what was probably meant: a command, or an other word."""
    meant: dict[str, list[str]] = {word: [word] for word in (*commands, *others)}
    for alike in ALIKE:
        here = [command for command in commands if command in alike]
        for word in alike if here else ():
            meant.setdefault(word, here)
    starts = [command for command in commands if command.startswith(name)]
    near = difflib.get_close_matches(name, meant, n=2, cutoff=_NEAR)
    words = [name] if name in meant else starts or near
    names = dict.fromkeys(command for word in words for command in meant[word])
    said = " or ".join(repr(command) for command in names)
    return f"there is no command {name!r}" + (f"; did you mean {said}?" if said else "")
