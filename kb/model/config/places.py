"""Paths of the settings files."""

from pathlib import Path
from typing import Final

HOME_CONFIGS: Final = ("kb.toml", "config.toml")
"""Names of the settings files in a home."""


def user_config() -> Path:
    """The user's own settings file."""
    import platformdirs

    return Path(platformdirs.user_config_dir("kb", appauthor=False)) / "config.toml"
