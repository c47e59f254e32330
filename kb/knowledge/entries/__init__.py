"""What is an entry? A markdown file whose front matter gives it an id for others to refer to.

Reads and writes the front matter, and compares versions. It does not find the files; the store's
facets know which entry refers to which. Pure.
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
