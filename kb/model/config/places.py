"""Paths of the settings files."""

from pathlib import Path
from typing import Final

from kb.model.user_folders import user_folder

HOME_CONFIGS: Final = ("kb.toml", "config.toml")
"""Names of the settings files in a home."""


def user_config() -> Path:
    """The user's own settings file."""
    return user_folder("config") / "config.toml"
