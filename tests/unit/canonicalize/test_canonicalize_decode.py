"""In which letters is it written?"""

import pytest

from kb.intake.canonicalize.decode import clean_text, decode_text

POLISH = "Zażółć gęślą jaźń. Pchnąć w tę łódź jeża lub ośm skrzyń fig."
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy"


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("plain", "ascii"),
        ("naïve — 日本", "utf-8"),
        ("naïve — 日本", "utf-8-sig"),
        ("naïve — 日本", "utf-16"),
        ("naïve — 日本", "utf-32"),
    ],
)
def test_marked_or_valid_text_needs_no_warning(text: str, codec: str) -> None:
    """What a mark or valid UTF-8 decides comes back whole, without a word."""
    assert decode_text(text.encode(codec)) == (text, None)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_seen(codec: str) -> None:
    """Zero bytes in every other place give UTF-16 away."""
    text, warning = decode_text("Grüße aus Köln".encode(codec) * 3)
    assert text == "Grüße aus Köln" * 3
    assert warning is not None
    assert codec in warning


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("café", "latin-1"),
        ("Crème brûlée recette", "cp1252"),
        ("Der Grüne Bär aß süße Äpfel – schön", "cp1252"),
        ("El niño comió piñas en España. ¿Qué más?", "cp1252"),
        ("São Paulo é uma cidade; informações, coração", "cp1252"),
        ("“Smart quotes” — and dashes", "cp1252"),
        (POLISH, "cp1250"),
        (CZECH, "cp1250"),
        ("Pijamalı hasta yağız şoföre çabucak güvendi", "cp1254"),
        ("Привет мир", "cp1251"),
        ("Съешь же ещё этих мягких французских булок", "koi8-r"),
        ("Καλημέρα κόσμε", "cp1253"),
        ("שלום עולם, מה שלומך היום", "cp1255"),
        ("مرحبا بالعالم كيف حالك اليوم", "cp1256"),
        ("こんにちは世界", "cp932"),
        ("こんにちは世界。今日はいい天気です", "euc_jp"),
        ("こんにちは", "iso2022_jp"),
        ("你好，世界。今天天气很好", "gb18030"),
        ("我們今天討論這個問題，請大家發表意見", "big5"),
        ("안녕하세요 세계", "cp949"),
    ],
)
def test_short_legacy_text_is_guessed_right(text: str, codec: str) -> None:
    """A line is enough to tell the common legacy encodings apart."""
    decoded, warning = decode_text(text.encode(codec))
    assert decoded == text
    assert warning is not None


def test_stray_bytes_in_utf8_are_replaced_and_counted() -> None:
    """One bad byte in a page of UTF-8 does not turn the page into mojibake."""
    data = "Schöne Grüße aus Köln. ".encode() * 50 + b"\xff end"
    text, warning = decode_text(data)
    assert text.startswith("Schöne Grüße")
    assert text.endswith("\ufffd end")
    assert warning is not None
    assert warning.startswith("1 byte")


def test_few_accents_in_long_latin1_are_not_strays() -> None:
    """ASCII with a few Latin-1 letters is Latin-1, not damaged UTF-8."""
    text, _ = decode_text(b"plain words " * 200 + b"caf\xe9 na\xefve")
    assert text.endswith("café naïve")


@pytest.mark.parametrize(
    ("codec", "declared"),
    [
        ("iso8859-5", ("ISO-8859-5",)),
        ("iso8859-5", ("no-such-thing", "a\0b", "punycode", "iso-8859-5", "koi8-r")),
        ("iso8859-5", ("utf-8", "utf-16", "iso-8859-5")),
        ("koi8-r", ("KOI8-R", "windows-1251")),
        ("utf-8", ("koi8-r",)),
        ("utf-8-sig", ("koi8-r",)),
        ("utf-16", ("koi8-r",)),
    ],
)
def test_a_declared_encoding_is_believed_where_it_fits(
    codec: str, declared: tuple[str, ...]
) -> None:
    """The first that is known and fits, unless a mark or valid UTF-8 says better."""
    text = "Съешь же ещё этих мягких французских булок"
    assert decode_text(text.encode(codec), declared) == (text, None)


def test_few_wrong_bytes_under_a_declared_encoding_are_said() -> None:
    """One byte that the encoding does not have costs a letter, many of them the declaration."""
    data = "你好，世界。今天天气很好。".encode("gb18030") * 40
    text, warning = decode_text(data + b"\xff", ("gb2312",))
    assert text.endswith("今天天气很好。\ufffd")
    assert warning == "some bytes are not gb18030 and were replaced"
    assert decode_text(data, ("euc-jp",)) == decode_text(data)


def test_any_bytes_decode_in_bounded_time() -> None:
    """Every byte string decodes to something that has UTF-8 bytes."""
    for data in (b"\xff" * 999, bytes(range(256)) * 400, b"\xfe\xff\xd8", b"\xff\xfe\x00\x00\xff"):
        clean_text(decode_text(data)[0]).encode()


def test_cleaning() -> None:
    """One newline, composed letters, no controls but tab; pages only where asked for."""
    assert clean_text("a\r\nb\rc\x0bd\x0ce\x00\x07\tf\x7f") == "a\nb\nc\nd\ne\tf"
    assert clean_text("e\u0301 ﬁ") == "é ﬁ"
    assert clean_text("a\n\f\nb", keep_pages=True) == "a\n\f\nb"
    assert clean_text("\ud83d\ude00 \ud800") == "😀 \ufffd"
