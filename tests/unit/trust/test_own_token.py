"""The operator's token: made once, for its user's eyes, and shown to their servers alone."""

import concurrent.futures
import stat
from pathlib import Path

import pytest

from kb.client.http_client import server_at, with_own_token
from kb.errors import ReadOnlyHome
from kb.store.trust import local_token as local_token_module
from kb.store.trust.local_token import LocalToken


def test_it_is_made_once(tmp_path: Path) -> None:
    """By however many at once; its folder and file are for their user alone."""
    root = tmp_path / "data" / "kb-server"
    assert LocalToken(root).read() is None
    with concurrent.futures.ThreadPoolExecutor(8) as crowd:
        made = set(crowd.map(lambda _: LocalToken(root).read_or_create(), range(16)))
    assert len(made) == 1
    assert LocalToken(root).read() in made
    modes = [stat.S_IMODE(place.stat().st_mode) for place in (root, root / "token")]
    assert modes == [0o700, 0o600]
    assert [place.name for place in root.iterdir()] == ["token"]


def test_one_that_others_can_read_is_none(tmp_path: Path) -> None:
    """It is neither shown nor taken; whoever starts a server hears what to do."""
    own = LocalToken(tmp_path)
    own.read_or_create()
    (tmp_path / "token").chmod(0o644)
    assert own.read() is None
    with pytest.raises(ReadOnlyHome, match="remove that file"):
        own.read_or_create()


def test_it_is_shown_where_a_server_of_ours_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To no other program that has the port, no other machine, and not when the server ended."""
    own = LocalToken(tmp_path)
    secret = own.read_or_create()
    monkeypatch.setattr(local_token_module, "local_token", lambda: own)

    def shown(address: str) -> tuple[str, str]:
        found = with_own_token(server_at(address, ""))
        return found.host, found.token

    with own.listening("127.0.0.1", 7777):
        assert shown("http://127.0.0.1:7777") == ("127.0.0.1", secret)
        assert shown("http://localhost:7777") == ("127.0.0.1", secret)
        assert shown("http://127.0.0.1:7778") == ("127.0.0.1", "")
        assert shown("http://[::1]:7777") == ("::1", "")
        assert shown("http://example.org:7777") == ("example.org", "")
        assert shown("https://127.0.0.1:7777") == ("127.0.0.1", "")
    assert shown("http://127.0.0.1:7777") == ("127.0.0.1", "")
    with own.listening("::1", 7777):
        assert shown("http://localhost:7777") == ("::1", secret)
    with own.listening("0.0.0.0", 7777):
        assert shown("http://127.0.0.1:7777") == ("127.0.0.1", secret)
