"""Addresses of repositories: what they name, and which are refused."""

import pytest

from kb.errors import Refused
from kb.intake.git.repository_address import parse_repository
from kb.model.source import is_within, name_and_folders, place_of, repository_source

HOST = "git+https://git.example"


@pytest.mark.parametrize(
    ("source", "location", "ref"),
    [
        (f"{HOST}/ada/boats", f"{HOST}/ada/boats", ""),
        (f"{HOST}/ada/boats.git@main", f"{HOST}/ada/boats.git@main", "main"),
        (f"{HOST}:443/ada/boats@v1", f"{HOST}/ada/boats@v1", "v1"),
        ("GIT+HTTPS://Git.Example/a@b/c", "git+https://git.example/a@b/c", "b/c"),
        (f"{HOST}/@ada/boats", f"{HOST}/@ada/boats", ""),
        (f"{HOST}/a@refs/pull/7/head", f"{HOST}/a@refs/pull/7/head", "refs/pull/7/head"),
        ("git+ssh://git@Box.example:2222/a", "git+ssh://git@box.example:2222/a", ""),
        ("git+ssh://git@box.example:22/a@x", "git+ssh://git@box.example/a@x", "x"),
        ("git+file:///back/a@x", "git+file:///back/a@x", "x"),
    ],
)
def test_addresses_in_their_normal_form(source: str, location: str, ref: str) -> None:
    """Host and scheme in lower case, no default port, the ref behind the last `@` of the path."""
    address = parse_repository(source)
    assert (address.location, address.ref) == (location, ref)
    assert parse_repository(location).location == location


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("git+https://ada:secret@git.example/a", "KB_GIT_TOKEN"),
        ("git+http://git.example/a", "only to this machine"),
        ("git+ext::sh -c true", "not the address of a repository"),
        ("git+ftp://git.example/a", "not the address of a repository"),
        (f"{HOST}/a#docs", "not the address of a repository"),
        (f"{HOST}/a?x=1", "not the address of a repository"),
        (HOST, "not the address of a repository"),
        (f"{HOST}/a@--upload-pack=x", "no name of a branch"),
        (f"{HOST}/a@x..y", "no name of a branch"),
        (f"{HOST}/a@x:y", "no name of a branch"),
        ("git+ssh://-oProxyCommand=x/a", "not a valid name"),
        ("git+file://elsewhere/a", "uses no such address"),
    ],
)
def test_addresses_that_are_refused(source: str, words: str) -> None:
    """Passwords, other protocols, what begins like an option, and parts of a repository."""
    with pytest.raises(Refused, match=words) as refused:
        parse_repository(source)
    assert "secret" not in str(refused.value)


def test_a_file_is_called_by_its_own_name() -> None:
    """Its repository is its place, and its folders those in the repository."""
    source = repository_source(f"{HOST}/ada/boats@main", "docs/a b#c.md")
    assert source == f"{HOST}/ada/boats@main#docs/a%20b%23c.md"
    assert name_and_folders(source) == ("a b#c", "git.example/ada/boats@main/docs/md")
    assert place_of(source) == f"{HOST}/ada/boats@main"
    assert is_within(source, f"{HOST}/ada/boats@main")
    assert is_within(source, f"{HOST}/ada/boats@main#docs")
    assert not is_within(source, f"{HOST}/ada/boats@mai")
