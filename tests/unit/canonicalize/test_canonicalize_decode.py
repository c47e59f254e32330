"""In which letters is it written?"""

import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.mime import is_text
from kb.intake.canonicalize.wide import unmarked_wide

POLISH = "Zażółć gęślą jaźń. Pchnąć w tę łódź jeża lub ośm skrzyń fig."
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy"
GREEK = "Καλημέρα κόσμε, τι κάνετε σήμερα;"
THAI = "สวัสดีชาวโลก วันนี้อากาศดีมาก เราจะไปตลาดกัน"
CHINESE = "你好，世界。今天天气很好，我们去市场吧。"
KOREAN = "안녕하세요 세계, 오늘은 날씨가 좋습니다. 시장에 갑시다."
JAPANESE = "こんにちは世界。今日はいい天気です。市場へ行きましょう。"
BENCH = Path(__file__).resolve().parents[2] / "bench" / "bench_charsets.py"
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


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


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize(
    "text",
    ["Grüße aus Köln" * 3, "Größe", "plain words", "Привет, мир", GREEK, THAI, CHINESE, KOREAN],
)
def test_wide_letters_without_a_mark_are_seen(text: str, codec: str) -> None:
    """UTF-16 and UTF-32 are told by the letters they yield, in both orders and any script."""
    data = text.encode(codec)
    assert is_text(data)
    decoded, warning = decode_text(data)
    assert decoded == text
    assert warning == f"read as {codec}, though no byte order mark says so"


def test_zeros_alone_make_no_wide_letters() -> None:
    """Records of a program, and UTF-8 with a zero in it, are not UTF-16."""
    assert unmarked_wide(struct.pack("<64I", *range(0, 6400, 100))) is None
    assert unmarked_wide(struct.pack("<64H", *range(64))) is None
    assert unmarked_wide(b"one line\0and another one\n" * 4) is None
    assert decode_text("naïve\0 words, and more".encode()) == ("naïve\0 words, and more", None)


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        (JAPANESE, "iso2022_jp"),
        (JAPANESE + "©", "iso2022_jp_2"),
        (KOREAN, "iso2022_kr"),
        (CHINESE, "hz"),
    ],
)
def test_escapes_tell_the_letters_of_east_asia(text: str, codec: str) -> None:
    """What is ASCII but for its escapes is read by them, and counts as text."""
    data = text.encode(codec)
    assert is_text(data)
    assert decode_text(data) == (text, f"read as {codec}, for its escapes")


@pytest.mark.parametrize(
    "text",
    ["cd ~/notes; echo ~{a,b}~", "~{}~}", "a ~{ b ~} c", "colour \x1b$(red)\x1b[0m", "~{12~} ~z"],
)
def test_other_braces_and_escapes_are_left_alone(text: str) -> None:
    """ASCII stays what it is where its escapes are none of an encoding's."""
    assert decode_text(text.encode()) == (text, None)


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
        (POLISH, "iso8859-2"),
        (THAI, "tis-620"),
        (THAI, "cp874"),
        ("Labas rytas, šiandien gražus oras. Eisime į turgų pirkti žuvų.", "cp1257"),
        (GREEK, "iso8859-7"),
        ("Съешь же ещё этих мягких французских булок", "cp866"),
        ("Съешь же ещё этих мягких французских булок", "mac_cyrillic"),
        ("Crème brûlée, gâteau à la crème et thé glacé, s'il vous plaît", "mac_roman"),
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


@pytest.mark.skipif(not DATA.is_dir(), reason="no texts of many languages beside the repository")
def test_real_texts_are_decoded_exactly() -> None:
    """At least 96 of 100 texts, in the encodings of their languages, come back to the letter."""
    answer = subprocess.run(
        [sys.executable, BENCH, DATA, "--per-codec", "2"],
        check=True,
        capture_output=True,
        text=True,
    )
    match = re.search(r"^all: (\d+) of (\d+) exactly", answer.stdout, re.MULTILINE)
    assert match is not None
    assert int(match[2]) > 200
    assert int(match[1]) >= 0.96 * int(match[2]), answer.stdout


def test_the_bench_says_what_it_skips(tmp_path: Path) -> None:
    """Without texts it ends well, and says so."""
    answer = subprocess.run(
        [sys.executable, BENCH, tmp_path / "none"], check=True, capture_output=True, text=True
    )
    assert answer.stdout.startswith("skipped: ")


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
