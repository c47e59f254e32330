"""How do bytes become markdown? The same bytes give the same markdown on every run.

Turns one source's bytes into text with a title, tags and a date. It does not find or fetch sources
and does not cut the text. Nothing here reads a clock, a network or another file.
"""

from kb.intake.canonicalize.dispatch import FINGERPRINT, CanonicalizeInput, canonicalize
from kb.intake.canonicalize.mime import detect_mime
from kb.intake.canonicalize.parser import Parser

__all__ = ["FINGERPRINT", "CanonicalizeInput", "Parser", "canonicalize", "detect_mime"]
