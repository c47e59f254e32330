"""How do bytes become markdown? The same bytes give the same markdown on every run.

Turns one source's bytes into text with a title, tags and a date. It does not find or fetch sources
and does not cut the text. Nothing here reads a clock, a network or another file;
`converting.py` starts programs for formats that only they read.
"""

from kb.intake.canonicalize.dispatch import (
    CanonicalizeInput,
    canonicalize,
    fingerprint_of,
    keeps_raw,
    may_read_ends,
    reads_as_before,
    reads_ends,
)
from kb.intake.canonicalize.mime import detect_mime
from kb.intake.canonicalize.parser import Parser
from kb.intake.canonicalize.parsers import parser_table

__all__ = [
    "CanonicalizeInput",
    "Parser",
    "canonicalize",
    "detect_mime",
    "fingerprint_of",
    "keeps_raw",
    "may_read_ends",
    "parser_table",
    "reads_as_before",
    "reads_ends",
]
