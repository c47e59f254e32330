"""Where is a note kept? In a git repository of markdown that keeps itself in order."""

from kb.knowledge.notebook.history import log, read_note
from kb.knowledge.notebook.notes import JobReport, checked_text, hand_in, report, reports, retry
from kb.knowledge.notebook.organize import Arrival, Complete, Organizer, TakeIn
from kb.knowledge.notebook.push import Pusher, PushReport, Sender, pushing
from kb.knowledge.notebook.repository import Logged
from kb.knowledge.notebook.tidy import TidyReport, look, tidy
from kb.knowledge.notebook.undo import Undone, undo

__all__ = [
    "Arrival",
    "Complete",
    "JobReport",
    "Logged",
    "Organizer",
    "PushReport",
    "Pusher",
    "Sender",
    "TakeIn",
    "TidyReport",
    "Undone",
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
