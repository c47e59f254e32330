"""Where does a user's machine have kb's folders, and the settings files in them?"""

import os
import sys
from pathlib import Path
from typing import Final, Literal

HOME_CONFIGS: Final = ("kb.toml", "config.toml")
"""Names of the settings files in a home."""

FolderKind = Literal["config", "data", "cache"]

_BELOW_HOME: Final[dict[FolderKind, str]] = {
    "config": ".config",
    "data": ".local/share",
    "cache": ".cache",
}


def user_folder(kind: FolderKind) -> Path:
    """The user's folder of a kind, whether or not it is there; relative for a user without one.

    It is what platformdirs says. Where that is plain (Linux, with absolute paths in the
    environment) kb says it itself, because every command asks and the import takes 7 ms.
    """
    if sys.platform == "linux" and "ANDROID_DATA" not in os.environ:
        named = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
        if os.path.isabs(named):
            return Path(named, "kb")
        home = os.environ.get("HOME", "")
        if os.path.isabs(home):
            return Path(home, _BELOW_HOME[kind], "kb")
    import platformdirs

    asked = {
        "config": platformdirs.user_config_dir,
        "data": platformdirs.user_data_dir,
        "cache": platformdirs.user_cache_dir,
    }
    return Path(asked[kind]("kb", appauthor=False))


def user_config() -> Path:
    """The user's own settings file."""
    return user_folder("config") / "config.toml"
