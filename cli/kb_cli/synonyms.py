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
    ("ls", "list", "recent"),
    ("show", "get", "cat", "view", "read", "links", "backlinks"),
    ("add", "create", "make"),
    ("new", "create", "make"),
    ("add", "crawl", "fetch", "download", "feed", "rss", "ingest", "load", "scan"),
    ("rm", "remove", "delete", "del", "unset", "forget", "unregister"),
    ("search", "grep", "rg"),
    ("ask", "answer", "chat"),
    ("similar", "related", "like"),
    ("export", "dump"),
    ("open", "edit"),
    ("sync-all", "refresh", "rescan"),
    ("stats", "info", "count", "size"),
    ("check", "verify", "fsck", "repair", "rebuild", "reindex"),
    ("compact", "clean", "cleanup", "vacuum", "gc", "optimize", "purge", "prune"),
    ("backup", "snapshot", "save"),
    ("config", "settings", "options"),
    ("serve", "server", "start", "run", "web", "ui", "http"),
    ("token", "login", "auth", "user", "users"),
    ("job", "queue"),
    ("init", "setup"),
)
# Words for what no command does by itself.
DONE_BY: Final = {
    "undo": "a doc that kb rm removed comes back with kb add FILE; kb note undo takes a note back",
    **dict.fromkeys(("mv", "move", "rename"), "move the file itself, and kb sync-all follows it"),
    **dict.fromkeys(("tag", "untag"), "kb add --tags LIST FILE says which tags a doc has"),
    **dict.fromkeys(("install", "upgrade"), "kb is kept by what installed it: uv, pipx or pip"),
}


def command_words(args: list[str]) -> list[str]:
    """The arguments with their first word as a command of kb, where it is a synonym of one."""
    if args[0] == "help":
        return [*args[1:], "--help"]
    return [SYNONYMS.get(args[0], args[0]), *args[1:]]
