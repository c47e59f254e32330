"""What was asked for? Layers of TOML, environment and flags, read once into frozen Settings."""

from kb.config.load import load
from kb.config.sections import (
    CompactSettings,
    EmbedSettings,
    FetchSettings,
    KbSettings,
    LlmSettings,
    NotebookSettings,
    PackSettings,
    SearchSettings,
    ServeSettings,
    Settings,
    TopicSettings,
)

__all__ = [
    "CompactSettings",
    "EmbedSettings",
    "FetchSettings",
    "KbSettings",
    "LlmSettings",
    "NotebookSettings",
    "PackSettings",
    "SearchSettings",
    "ServeSettings",
    "Settings",
    "TopicSettings",
    "load",
]
