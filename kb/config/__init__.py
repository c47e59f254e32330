"""What was asked for? Layers of TOML, environment and flags, read once into frozen Settings."""

from kb.config.load import load
from kb.config.places import HOME_CONFIGS, user_config
from kb.config.sections import (
    ClientSettings,
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
    "HOME_CONFIGS",
    "ClientSettings",
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
    "user_config",
]
