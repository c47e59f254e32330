"""Keys that fit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.store.keys import (
    entity_prefix,
    facet_key,
    facet_prefix,
    lsid_key,
    text_key,
    text_of,
    vector_key,
)
from kb.store.kv import KEY_BYTES_MAX

_TEXTS = (
    st.text(max_size=6)
    | st.sampled_from(["", "\0", "\x01", "\x02", "a\0", "a\x01"])
    | st.builds(
        lambda part, times: part * times, st.text(min_size=1, max_size=3), st.integers(150, 400)
    )
)


def test_short_text_stays_readable() -> None:
    """A text that fits is its own key, in UTF-8."""
    assert [text_key(t) for t in ("tag", "标签", "a" * 400)] == [
        b"tag",
        "标签".encode(),
        b"a" * 400,
    ]


@given(_TEXTS)
def test_a_key_gives_its_text_back(text: str) -> None:
    """Unless only the hash was kept."""
    key = text_key(text)
    assert text_of(key) == (None if len(key) == 33 and key[:1] == b"\x02" else text)


@pytest.mark.parametrize("text", ["", "a" * 401, "标" * 134, "a\0b", "\x02", "\x02abc"])
def test_other_text_becomes_its_hash(text: str) -> None:
    """Empty, long, with a NUL or beginning like a hash: 33 bytes behind the mark."""
    key = text_key(text)
    assert (len(key), key[:1]) == (33, b"\x02")


def test_a_lone_surrogate_has_a_key() -> None:
    """A file name that is not UTF-8 still has a key."""
    assert text_key("\udcff") == b"\xed\xb3\xbf"


@settings(deadline=None)
@given(_TEXTS, _TEXTS)
def test_different_texts_have_different_keys(one: str, other: str) -> None:
    """Keys are equal exactly where texts are, and no prefix is the start of another's."""
    assert (text_key(one) == text_key(other)) == (one == other)
    if one != other:
        assert not entity_prefix(one).startswith(entity_prefix(other))
        assert not facet_prefix("tag", one).startswith(facet_prefix("tag", other))


@settings(deadline=None, max_examples=50)
@given(_TEXTS)
def test_every_key_fits(text: str) -> None:
    """No text makes a key longer than the environment takes."""
    longest = facet_key("visibility", text, 2**63)
    assert len(text_key(text)) <= len(longest) <= KEY_BYTES_MAX
    assert longest.startswith(facet_prefix("visibility", text))


def test_fixed_size_keys() -> None:
    """A source's key has 16 bytes, a vector's 8 and its text's hash."""
    assert len(lsid_key("x" * 9000)) == len(lsid_key("")) == 16
    assert len(vector_key("model", "ab" * 16)) == 24
