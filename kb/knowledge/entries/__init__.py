"""What is an entry? A markdown file whose front matter gives it an id for others to refer to.

Useful for reading and writing that front matter, and for comparing versions. Not for finding the
files, nor for what refers to what: the store's facets know that. Pure.
"""

from kb.knowledge.entries.parse import Entry, EntryFault, id_line, is_id, parse
from kb.knowledge.entries.versions import compare, is_version
from kb.knowledge.entries.write import draft, id_of, text_of

__all__ = [
    "Entry",
    "EntryFault",
    "compare",
    "draft",
    "id_line",
    "id_of",
    "is_id",
    "is_version",
    "parse",
    "text_of",
]
