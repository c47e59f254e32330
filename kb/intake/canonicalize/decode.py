"""In which letters is it written? Bytes become text; what had to be guessed is said."""

import codecs
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from kb.intake.canonicalize.mime import bom_encoding
from kb.intake.canonicalize.wide import unmarked_wide

_GUESS_BYTES: Final = 262_144
_SHIFT: Final = b"\x1b$"
_ESCAPED: Final = ("iso2022_jp", "iso2022_kr", "iso2022_jp_2", "iso2022_jp_2004", "iso2022_jp_ext")
# Pairs of visible bytes between the escapes, and what they yield: programs have such braces, too.
_HZ: Final = re.compile(rb"~\{(?:[!-}][!-~]){1,200}~\}")
_HAN: Final = re.compile("[\u4e00-\u9fff]{2}")
# Of all bytes, how many may be wrong in text that is otherwise UTF-8.
_STRAY_SHARE_MAX: Final = 0.005
# For each wrong byte, how many letters must be right before the rest counts as UTF-8.
_RIGHT_PER_STRAY: Final = 4

# Of all characters, how many may be wrong where the encoding was declared.
_WRONG_SHARE_MAX: Final = 0.005
# What browsers read under these names; as written they would lose letters.
_ALIASES: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
_CODEC_STARTS: Final = (
    "utf-8 iso8859 cp125 cp866 cp874 cp93 cp949 koi8 big5 gb euc_ shift_jis iso2022_jp mac- tis-620"
)
_CODECS: Final = tuple(_CODEC_STARTS.split())

_RIGHT: Final = re.compile("[^\x00-\x7f\ufffd]")
_NEWLINES: Final = re.compile(r"\r\n?|[\f\v]")
_PAGED_NEWLINES: Final = re.compile(r"\r\n?|\v")
_CONTROLS: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
_UNCLEAN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def decode_text(data: bytes, declared: Sequence[str] = ()) -> tuple[str, str | None]:
    """Text of `data`, and a warning where a guess or a repair was needed.

    A byte order mark decides, then strict UTF-8, since letters beyond ASCII that form it by chance
    are not to be feared, then the first of the `declared` encodings that is known and fits, then
    escapes as ISO-2022 and HZ have them, then UTF-16 and UTF-32 without a mark, then UTF-8 with a
    few stray bytes replaced, then a guess from the first 256 KiB. Never raises; the text is as
    decoded, see `clean_text`.
    """
    if (codec := bom_encoding(data)) is not None:
        text = data.decode(codec, "replace")
        return text, _replaced_warning(text, data, codec.removesuffix("-sig"))
    for name in declared:
        if (as_declared := _as_declared(data, name)) is not None:
            return as_declared
    if (escaped := _escaped(data)) is not None:
        return escaped
    if (as_utf8 := _as_utf8(data)) is not None:
        return as_utf8, None
    if (codec := unmarked_wide(data)) is not None:
        return data.decode(codec, "replace"), f"read as {codec}, though no byte order mark says so"
    if (repaired := _mostly_utf8(data)) is not None:
        return repaired
    return _guessed(data)


def clean_text(text: str, *, keep_pages: bool = False) -> str:
    r"""Newlines as \\n, NFC, no control characters but tab and newline.

    A form feed becomes a newline, or stays where `keep_pages`. Lone surrogates become U+FFFD,
    so that the result has UTF-8 bytes.
    """
    if not text.isascii():
        if not unicodedata.is_normalized("NFC", text):
            text = unicodedata.normalize("NFC", text)
        text = without_surrogates(text)
    if _UNCLEAN.search(text) is None:
        return text
    newlines = _PAGED_NEWLINES if keep_pages else _NEWLINES
    return _CONTROLS.sub("", newlines.sub("\n", text))


def without_surrogates(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def has_text(text: str) -> bool:
    """Whether anything but white space and invisible marks is in it."""
    return bool(text.strip(" \t\n\f\u00a0\ufeff\u200b\u200c\u200d\u2060").strip())


def _as_declared(data: bytes, name: str) -> tuple[str, str | None] | None:
    """The text under the encoding of this name; None where it is unknown, or the bytes differ."""
    codec = _known_codec(name)
    if codec is None or _is_utf8(data, codec):
        return None
    text = data.decode(codec, "replace")
    wrong = text.count("\ufffd")
    if wrong > _WRONG_SHARE_MAX * len(text):
        return None
    return text, f"some bytes are not {codec} and were replaced" if wrong else None


def _known_codec(name: str) -> str | None:
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    codec = _ALIASES.get(codec, codec)
    return codec if codec.startswith(_CODECS) else None


def _is_utf8(data: bytes, declared: str) -> bool:
    if declared == "utf-8":
        return True
    if data.isascii():
        # Only the encodings that shift with escapes say more than ASCII in ASCII bytes.
        return not declared.startswith("iso2022")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _replaced_warning(text: str, data: bytes, codec: str) -> str | None:
    if "\ufffd" not in text or (codec == "utf-8" and b"\xef\xbf\xbd" in data):
        return None
    return f"some bytes are not {codec} and were replaced"


def _escaped(data: bytes) -> tuple[str, str] | None:
    """Encodings whose bytes are ASCII with escapes around the letters of East Asia."""
    codecs_escaped = _ESCAPED if _SHIFT in data else ("hz",) if _HZ.search(data) else ()
    if not codecs_escaped or not data.isascii():
        return None
    for codec in codecs_escaped:
        try:
            text = data.decode(codec)
        except UnicodeDecodeError:
            continue
        if codec != "hz" or _HAN.search(text):
            return text, f"read as {codec}, for its escapes"
    return None


def _as_utf8(data: bytes) -> str | None:
    # Zeros are valid UTF-8, and so are most letters of Europe as UTF-16 has them.
    if b"\0" in data[:_GUESS_BYTES] and unmarked_wide(data) is not None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _mostly_utf8(data: bytes) -> tuple[str, str] | None:
    text = data.decode("utf-8", "replace")
    stray = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
    if stray > _STRAY_SHARE_MAX * len(data):
        return None
    right = len(_RIGHT.findall(text))
    if right < _RIGHT_PER_STRAY * stray:
        return None
    noun = "byte is" if stray == 1 else "bytes are"
    return text, f"{stray} {noun} not UTF-8 and replaced by \ufffd"


def _guessed(data: bytes) -> tuple[str, str]:
    from kb.intake.canonicalize.charset import guess_encoding

    cut = data.rfind(b"\n", 0, _GUESS_BYTES) + 1 if len(data) > _GUESS_BYTES else 0
    codec = guess_encoding(data[: cut or _GUESS_BYTES])
    if codec is None:
        return data.decode("utf-8", "replace"), "its encoding is unknown; read as UTF-8 with gaps"
    return data.decode(codec, "replace"), f"not UTF-8; read as {codec}, which is a guess"
