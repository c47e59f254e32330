"""Words that people type for a command; the group looks here once no command has the name."""

from typing import Final

# What reads or adds is done at once. Hidden from help.
SYNONYMS: Final = {
    "find": "search",
    "query": "search",
    "index": "add",
    "import": "add",
    "list": "ls",
    "get": "show",
    "cat": "show",
    "view": "show",
    "tags": "facets",
    "status": "stats",
    "update": "sync-all",
    "sync": "sync-all",
    "version": "--version",
}
# Words that people type for one another. They are only suggested: nobody should remove, or make
# anything, by a word that they guessed.
ALIKE: Final = (
    ("ls", "list"),
    ("show", "get", "cat", "view", "read"),
    ("add", "new", "create", "make"),
    ("rm", "remove", "delete", "del"),
)


def command_words(args: list[str]) -> list[str]:
    """The arguments with their first word as a command of kb, where it is a synonym of one."""
    if args[0] == "help":
        return [*args[1:], "--help"]
    return [SYNONYMS.get(args[0], args[0]), *args[1:]]
