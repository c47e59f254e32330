"""Claims about which entities a text mentions."""

import pytest
from growth import assert_linear

from kb.intake.entities import MENTIONS_MAX, extract


def keys(text: str) -> list[str]:
    return [mention.key for mention in extract(text)]


def surfaces(text: str) -> list[str]:
    return [mention.surface for mention in extract(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://a.org/b.", ["https://a.org/b"]),
        ("(https://a.org/b)", ["https://a.org/b"]),
        ("https://en.org/Foo_(bar), and", ["https://en.org/Foo_(bar)"]),
        ("[x](https://a.org/p_(q)), y", ["https://a.org/p_(q)"]),
        ("[https://a.org](https://b.org)", ["https://a.org", "https://b.org"]),
        ("<https://a.org/?q=1&r=2#f>", ["https://a.org/?q=1&r=2#f"]),
        ("见https://例子.org/路径，然后", ["https://例子.org/路径"]),
        ("见https://a.org/c。d", ["https://a.org/c"]),
        ("“https://a.org/c”", ["https://a.org/c"]),
        ("`HTTP://A.org`", ["HTTP://A.org"]),
        ("http://[::1]:80/x", ["http://[::1]:80/x"]),
        ("http:// https://) ftp://a.org", []),
        ("https://a.org/#fff https://b.org/@bob", ["https://a.org/#fff", "https://b.org/@bob"]),
    ],
)
def test_link_ends_where_a_reader_ends_it(text: str, expected: list[str]) -> None:
    """A link loses the punctuation and the brackets of the sentence, and hides what is in it."""
    assert surfaces(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("write to A.b+c@D.co.uk.", ["email:a.b+c@d.co.uk"]),
        ("mailto:a@b.org, <c@d.org>", ["email:a@b.org", "email:c@d.org"]),
        ("x@y and x@1.2 and x@-a.org", []),
        ("邮箱a@b.org。", ["email:a@b.org"]),
    ],
)
def test_addresses(text: str, expected: list[str]) -> None:
    """An address needs a name, and a domain that ends in letters."""
    assert keys(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Title\n## Two", []),
        ("#Tag, #naïve-idea #a_b.", ["hashtag:tag", "hashtag:naïve-idea", "hashtag:a_b"]),
        ("#123 &#39; a#b ##x", []),
        ("你好#中文 ＃全角", ["hashtag:中文", "hashtag:全角"]),
        ("**#bold** (#in)", ["hashtag:bold", "hashtag:in"]),
    ],
)
def test_hashtags(text: str, expected: list[str]) -> None:
    """A hashtag has a letter and does not continue a word; a heading's mark is none."""
    assert keys(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@Bob's and @al.x. and @_u", ["mention:bob", "mention:al.x", "mention:_u"]),
        ("a@b @@x @1 @", []),
        ("感谢@小明 ！", ["mention:小明"]),
    ],
)
def test_mentions(text: str, expected: list[str]) -> None:
    """A mention does not continue a word, and is no address."""
    assert keys(text) == expected


def test_each_key_once_in_order_of_first_appearance() -> None:
    """Equal entities are told once, with the surface met first."""
    found = extract("#B @a #b https://X.org/ #a https://x.org")
    assert [(m.kind, m.surface) for m in found] == [
        ("hashtag", "#B"),
        ("mention", "@a"),
        ("url", "https://X.org/"),
        ("hashtag", "#a"),
    ]


def test_mentions_are_capped() -> None:
    """No text has more than MENTIONS_MAX."""
    assert len(extract(" ".join(f"#t{n}" for n in range(MENTIONS_MAX + 50)))) == MENTIONS_MAX


@pytest.mark.parametrize(
    "unit",
    [
        *("a@", "http://", "#", "@", "a.", "://", "(((", "https://a(", "https://a)", "https://a]("),
        *("@a", "a@a.", "a@b.c", "-@-.", "#漢", "#1", "\u0301#", "https://a.org/?", "é@é."),
    ],
)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    """Whatever is repeated, twice the text is twice the work."""
    half = unit * (60_000 // len(unit))
    assert_linear(extract, half, half * 2)
