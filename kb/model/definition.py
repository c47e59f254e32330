"""Where in a text of source code is something defined, and what is it called?"""

from msgspec import Struct


class Definition(Struct, frozen=True, array_like=True, gc=False):
    """One definition; places are characters of the text, from 0 on."""

    start: int
    """Where the line begins on which it begins, after the comments above it."""
    signature: int
    """Where the line begins on which its signature does, after its decorators."""
    head_end: int
    """Where the line ends that holds its name."""
    end: int
    """Where it ends itself."""
    name: int
    """Where its name begins."""
    name_end: int
