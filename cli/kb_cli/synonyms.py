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
# What removes is only suggested: nobody should remove by a word that they guessed.
SUGGESTED: Final = {"remove": "rm", "delete": "rm", "del": "rm"}


def command_words(args: list[str]) -> list[str]:
    """The arguments with their first word as a command of kb, where it is a synonym of one."""
    if args[0] == "help":
        return [*args[1:], "--help"]
    return [SYNONYMS.get(args[0], args[0]), *args[1:]]
