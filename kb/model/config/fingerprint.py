"""A hash of everything that a search's result depends on besides the store and the request."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kb import __version__
from kb.model.config.sections import Settings
from kb.model.ids import sha256_hex
from kb.model.search import SpaceName


def search_fingerprint(
    settings: Settings, home: Path, name: SpaceName, connects_by: Sequence[tuple[str, str]] = ()
) -> str:
    """Equal if two processes of one kb version would return equal results from an equal store.

    `connects_by` is what decides, besides the home, which store is reached, and as whom.
    """
    sections = (
        *(settings.embed, settings.search, settings.rerank),
        *(settings.index, settings.kb),
    )
    place = os.fsencode(os.path.realpath(home))
    return sha256_hex(msgspec.json.encode((__version__, place, name, sections, tuple(connects_by))))
