"""kb.model.config.places: the folders that platformdirs names."""

import platformdirs
import pytest

from kb.model.config.places import FolderKind, user_folder

KINDS: tuple[FolderKind, ...] = ("config", "data", "cache")


@pytest.mark.parametrize("home", ["/home/ada", "/", "relative", "", None])
@pytest.mark.parametrize("named", ["/elsewhere/x", "/elsewhere/x/", "relative", "", None])
def test_the_folders_are_those_of_platformdirs(
    monkeypatch: pytest.MonkeyPatch, home: str | None, named: str | None
) -> None:
    """Whatever the environment says, or does not say."""
    for name, value in {"HOME": home, **{f"XDG_{k.upper()}_HOME": named for k in KINDS}}.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    asked = {
        "config": platformdirs.user_config_dir,
        "data": platformdirs.user_data_dir,
        "cache": platformdirs.user_cache_dir,
    }
    for kind in KINDS:
        assert str(user_folder(kind)) == asked[kind]("kb", appauthor=False)
