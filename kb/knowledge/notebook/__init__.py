"""Where is a note kept? In a git repository of markdown that keeps itself in order."""

from kb.knowledge.notebook.history import log, read_note
from kb.knowledge.notebook.notes import JobReport, checked_text, hand_in, report, reports, retry
from kb.knowledge.notebook.organize import ApplyChanges, Complete, NotebookChanges, Organizer
from kb.knowledge.notebook.push import Pusher, PushReport, Sender, pushing
from kb.knowledge.notebook.repository import Logged
from kb.knowledge.notebook.sharing import SharedNotebook
from kb.knowledge.notebook.tidy import TidyReport, look, tidy
from kb.knowledge.notebook.undo import UndoResult, undo

__all__ = [
    "ApplyChanges",
    "Complete",
    "JobReport",
    "Logged",
    "NotebookChanges",
    "Organizer",
    "PushReport",
    "Pusher",
    "Sender",
    "SharedNotebook",
    "TidyReport",
    "UndoResult",
    "checked_text",
    "hand_in",
    "log",
    "look",
    "pushing",
    "read_note",
    "report",
    "reports",
    "retry",
    "tidy",
    "undo",
]
