"""What the commands of `kb note` print as JSON."""

from typing import Any

from kb.knowledge.notebook import JobReport, PushReport, TidyReport
from kb.knowledge.notebook.survey import BrokenLink, DeadEntry, Duplicate, OddName
from kb.operations.notes import ListedNote, Notes


def note_shapes() -> list[tuple[str, Any]]:
    """Under each command's name, the records of its document: where, and of which class."""
    return [
        ("add", JobReport),
        ("ls", Notes),
        ("ls.notes", ListedNote),
        ("push", PushReport),
        ("tidy", TidyReport),
        ("tidy.broken_links", BrokenLink),
        ("tidy.dead_entries", DeadEntry),
        ("tidy.duplicates", Duplicate),
        ("tidy.odd_names", OddName),
    ]
