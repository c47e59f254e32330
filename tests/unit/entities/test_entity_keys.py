"""Claims about when two entities are the same."""

import pytest

from kb.intake.entities import fold_key, parse_entity_argument, parse_entity_prefix
from kb.model.text import EntityKind


@pytest.mark.parametrize(
    ("kind", "surface", "expected"),
    [
        ("url", "HTTPS://A.Org/Path/", "url:https://a.org/Path"),
        ("url", "https://a.org", "url:https://a.org"),
        ("url", "https://a.org?Q=1", "url:https://a.org?Q=1"),
        ("url", "https://a.org/#Frag", "url:https://a.org/#Frag"),
        ("email", "A@B.org", "email:a@b.org"),
        ("hashtag", "#Straße", "hashtag:strasse"),
        ("hashtag", "#ﬁne", "hashtag:fine"),
        ("hashtag", "＃ＡＢ", "hashtag:ab"),
        ("mention", "@Bob", "mention:bob"),
    ],
)
def test_fold_key(kind: EntityKind, surface: str, expected: str) -> None:
    """Names lose case and compatibility forms; of a link only scheme, host and last slash go."""
    assert fold_key(kind, surface) == expected


@pytest.mark.parametrize(
    ("arg", "expected"),
    [
        ("#Tag", ("hashtag:tag",)),
        ("@Bob", ("mention:bob",)),
        ("A@b.org", ("email:a@b.org",)),
        ("https://A.org/x/", ("url:https://a.org/x",)),
        ("word", ("hashtag:word", "mention:word")),
        (" Word ", ("hashtag:word", "mention:word")),
        ("＃标签", ("hashtag:标签",)),
        ("", ()),
        ("#", ()),
    ],
)
def test_parse_entity_argument(arg: str, expected: tuple[str, ...]) -> None:
    """A mark or a shape decides; a bare word may be either kind of name."""
    assert parse_entity_argument(arg) == expected


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("#Te", ("hashtag:te",)),
        ("＠An", ("mention:an",)),
        ("HTTPS://X.Example/A", ("url:https://x.example/A",)),
        ("Te", ("email:te", "hashtag:te", "mention:te", "url:te")),
        (" ", ("email:", "hashtag:", "mention:", "url:")),
    ],
)
def test_the_start_of_a_name_becomes_starts_of_keys(start: str, expected: tuple[str, ...]) -> None:
    """A mark or a scheme decides the kind; a bare start may be of any, and nothing is of all."""
    assert parse_entity_prefix(start) == expected
