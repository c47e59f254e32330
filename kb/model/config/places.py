"""Where settings are written."""

from pathlib import Path
from typing import Final

HOME_CONFIGS: Final = ("kb.toml", "config.toml")
"""In a home."""


def user_config() -> Path:
    """The user's own settings file."""
    import platformdirs

    return Path(platformdirs.user_config_dir("kb", appauthor=False)) / "config.toml"
