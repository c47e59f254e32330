"""Builds the decoders of kb's records before there are threads.

msgspec builds what it knows of a record type at its first use. If two threads do so at once, one
may read what the other has half built, and the process ends by a segmentation fault.
"""

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

# Whatever a request may load later, and has records that are decoded by their type.
_LATE: Final = ("kb.search.index.lexical_files", "kb.search.index.dense_files")


def build_decoders() -> int:
    """Build those of all record types that are loaded; returns how many."""
    for name in _LATE:
        importlib.import_module(name)
    count = 0
    for kind in set(_kinds(Struct)):
        # A type that names what is not imported at run time is decoded nowhere.
        with contextlib.suppress(TypeError, NameError, AttributeError, ValueError):
            msgspec.json.Decoder(kind)
            count += 1
    return count


def _kinds(kind: type[Any]) -> Iterator[type[Any]]:
    for sub in kind.__subclasses__():
        if sub.__module__.startswith("kb."):
            yield sub
        yield from _kinds(sub)
