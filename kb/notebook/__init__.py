"""Where is a note kept? In a git repository of markdown that keeps itself in order."""

from kb.notebook.history import log, read_note
from kb.notebook.notes import JobReport, checked_text, hand_in, report, reports, retry
from kb.notebook.organize import Arrival, Complete, Organizer, TakeIn
from kb.notebook.push import Pusher, PushReport, Sender, pushing
from kb.notebook.repository import Logged
from kb.notebook.tidy import TidyReport, look, tidy
from kb.notebook.undo import Undone, undo

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
