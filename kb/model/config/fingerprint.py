"""One word for everything that a search depends on beside the store and what is asked."""

import os
from pathlib import Path

import msgspec

from kb import __version__
from kb.model.config.sections import Settings
from kb.model.ids import sha256_hex
from kb.model.search import SpaceName


def search_fingerprint(settings: Settings, home: Path, name: SpaceName) -> str:
    """Equal where two processes of the same kb would give the same answer from the same store."""
    sections = (settings.embed, settings.search, settings.index, settings.kb)
    place = os.fsencode(os.path.realpath(home))
    return sha256_hex(msgspec.json.encode((__version__, place, name, sections)))
