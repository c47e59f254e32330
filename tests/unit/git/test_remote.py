"""Addresses of a remote: which are pushed to, and what is kept of them."""

import pytest

from kb.intake.git.remote import BadRemote, Remote, parsed, shown


@pytest.mark.parametrize(
    ("address", "remote"),
    [
        ("/backup/notes.git", Remote(kind="local", path="/backup/notes.git")),
        ("../notes.git", Remote(kind="local", path="../notes.git")),
        ("./a:b", Remote(kind="local", path="./a:b")),
        ("file:///back%20up/n.git", Remote(kind="local", path="/back up/n.git")),
        (
            "git@example.org:ada/notes.git",
            Remote(kind="ssh", host="example.org", user="git", path="ada/notes.git"),
        ),
        ("box:notes", Remote(kind="ssh", host="box", path="notes")),
        ("[::1]:notes", Remote(kind="ssh", host="::1", path="notes")),
        (
            "ssh://ada@box.local:2222/srv/n.git",
            Remote(kind="ssh", host="box.local", port=2222, user="ada", path="/srv/n.git"),
        ),
        ("ssh://box/~/n.git", Remote(kind="ssh", host="box", path="~/n.git")),
        (
            "https://ada@git.example/n.git",
            Remote(kind="http", host="git.example", user="ada", path="https://git.example/n.git"),
        ),
        (
            "http://127.0.0.1:8080/n",
            Remote(kind="http", host="127.0.0.1", port=8080, path="http://127.0.0.1:8080/n"),
        ),
        ("http://[::1]/n", Remote(kind="http", host="::1", path="http://[::1]/n")),
    ],
)
def test_addresses_that_are_pushed_to(address: str, remote: Remote) -> None:
    """As git writes them: paths, ssh in both forms, https, http to this machine."""
    assert parsed(address, "KB_X_TOKEN") == remote


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ext::sh -c touch%20/x", "helper programs"),
        ("fd::3", "helper programs"),
        ("git://example.org/n", "uses no such address for git"),
        ("ftp://example.org/n", "uses no such address for git"),
        ("file://elsewhere/n", "uses no such address for git"),
        ("http://example.org/n", "use https"),
        ("http://127.0.0.1.example.org/n", "use https"),
        ("https://ada:secret@example.org/n", "KB_X_TOKEN"),
        ("https://example.org/n?token=secret", "a query"),
        ("https://-x.example.org/n", "not a valid name"),
        ("https:///n", "not a valid name"),
        ("https://example.org:x/n", "cannot be read"),
        ("ssh://-oProxyCommand=x/n", "not a valid name"),
        ("-oProxyCommand=x:n", "not a valid name"),
        ("-x@box:n", "not a valid name"),
        ("ada@-box:n", "not a valid name"),
        ("ssh://-x@box/n", "not a valid name"),
        ("box:-x", "begins like an option"),
        ("box:", "empty"),
        (" ", "empty"),
        ("/a\nb", "control characters"),
        ("/" + "a" * 3_000, "too long"),
    ],
)
def test_addresses_that_are_not(address: str, words: str) -> None:
    """Nothing that starts a program, begins like an option, or would send a login in the clear."""
    with pytest.raises(BadRemote, match=words):
        parsed(address, "KB_X_TOKEN")


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://ada:se%40cret@example.org/n", "https://example.org/n"),
        ("https://a:b@c@example.org/n", "https://example.org/n"),
        ("ssh://git@box/n", "ssh://box/n"),
        ("git@box:n", "git@box:n"),
        ("/a\nb", "/a?b"),
    ],
)
def test_no_login_is_kept(address: str, kept: str) -> None:
    """An address is kept and printed without user and password, on one line."""
    assert shown(address) == kept
