"""What kind of bytes are these? The bytes decide, the name settles what they leave open."""

import codecs
import re
from typing import Final

from kb.intake.canonicalize.parsers import PLAIN, parser_table
from kb.intake.canonicalize.wide import unmarked_wide

MARKDOWN: Final = "text/markdown"
HTML: Final = "text/html"
PDF: Final = "application/pdf"
BINARY: Final = "application/octet-stream"

# What other formats are kept in.
_CONTAINERS: Final = frozenset(
    {
        *("application/zip", "application/gzip", "application/x-tar"),
        *("application/x-ole-storage", "application/vnd.sqlite3"),
    }
)

# Files of Apple's that are text or binary, whichever the program prefers.
_PLISTS: Final = frozenset({"application/x-webarchive", "application/x-webloc"})
_SAMPLE_BYTES: Final = 65_536
_PDF_WINDOW_BYTES: Final = 1024
_MARKUP_WINDOW_CHARS: Final = 16_384

_CODE_NAMES: Final = """
    rst org log csv tsv json jsonl ndjson ipynb yaml yml toml ini cfg conf tex bib adoc textile
    py pyi rb js mjs cjs ts tsx jsx css scss less java kt c h cc cpp hpp cs go rs swift scala sh
    bash zsh fish ps1 bat sql r jl lua pl php jsp asp erb vue svelte tmpl j2 diff patch eml srt
    vtt el lisp clj hs ml ex exs erl dart proto graphql tf nix dockerfile makefile
"""
# Endings whose files are text even when they quote HTML or a PDF header.
_CODE_ENDINGS: Final = frozenset(_CODE_NAMES.split())

# A signature that text could not begin with, and what it announces.
_STRONG: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/x-rar-compressed"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"\x7fELF", "application/x-executable"),
    (b"\xca\xfe\xba\xbe", "application/java-vm"),
    (b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\x00asm", "application/wasm"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"{\\rtf", "application/rtf"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"fLaC", "audio/flac"),
    (b"OggS\x00", "audio/ogg"),
    (b"ID3\x02", "audio/mpeg"),
    (b"ID3\x03", "audio/mpeg"),
    (b"ID3\x04", "audio/mpeg"),
    (b"%!PS-Adobe", "application/postscript"),
)
# Signatures of letters alone: believed only where the bytes are not text.
_WEAK: Final = (
    (b"BM", "image/bmp"),
    (b"MZ", "application/x-msdownload"),
    (b"BZh", "application/x-bzip2"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
)
_RIFF: Final = {b"WAVE": "audio/wav", b"WEBP": "image/webp", b"AVI ": "video/x-msvideo"}
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_IN_ZIP: Final = {
    b"word/": _OFFICE + "wordprocessingml.document",
    b"xl/": _OFFICE + "spreadsheetml.sheet",
    b"ppt/": _OFFICE + "presentationml.presentation",
}
_EPUB: Final = b"mimetypeapplication/epub+zip"
# The head of a member, 30 bytes long, and its name. A document may hold another one whole.
_ZIP_MEMBER: Final = re.compile(rb"PK\x03\x04.{26}(word/|xl/|ppt/)", re.DOTALL)

_MAIL_HEAD_BYTES: Final = 16_384
# Beside a From, no other text begins with these.
_MAIL_HEADERS: Final = frozenset({b"message-id", b"received", b"mime-version", b"return-path"})

_ZIP: Final = b"PK\x03\x04"
_DOCUMENT_STARTS: Final = (b"[Content_Types].xml", b"mimetype", b"_rels/.rels", b"docProps/")
_ODF: Final = re.compile(rb"mimetype(application/vnd\.oasis\.opendocument\.[a-z]{1,40})")
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Controls that text has no use for; tab, newlines, form feed, backspace and escape are not among.
_CONTROL_BYTES: Final = bytes(b for b in (*range(32), 127) if b not in b"\t\n\v\f\r\b\x1b")
_CONTROL_CHARS: Final = re.compile("[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufffd\ufffe]")
# ISO-2022-KR parts Korean from ASCII by two controls.
_SHIFTS_KOREAN: Final = b"\x1b$)C"
_UTF8_CONTROL_SHARE_MAX: Final = 0.05
_LEGACY_CONTROL_SHARE_MAX: Final = 0.002
_HTML_START: Final = re.compile(r"<(?:!doctype\s+html|(?:html|head|body)(?=[\s>/]))", re.IGNORECASE)
_BOOKMARKS_START: Final = re.compile(r"<!doctype\s+netscape-bookmark-file", re.IGNORECASE)
_SVG_START: Final = re.compile(r"<(?:!doctype\s+)?svg[\s>]", re.IGNORECASE)


def detect_mime(data: bytes, name: str | None) -> str:
    """The mime under which `canonicalize` takes `data`, or refuses it by name.

    The result depends on the first 64 KiB, the ending of `name` and the parsers that are installed
    only. A format without a parser is named all the same, as `application/octet-stream` where not
    even that is known.
    """
    sample = data[:_SAMPLE_BYTES]
    ending = _ending(name)
    table = parser_table()
    by_ending = table.mime_of.get(ending, "")
    parser = table.by_mime.get(by_ending)
    is_of_text = parser is not None and parser.is_text
    known_text = (is_of_text and by_ending != HTML) or ending in _CODE_ENDINGS
    if sample.lstrip(b"\xef\xbb\xbf \t\r\n\0").startswith(b"%PDF-"):
        return PDF
    if not known_text and b"%PDF-" in sample[:_PDF_WINDOW_BYTES]:
        return PDF
    if by_ending in _PLISTS:
        return by_ending
    signed = _signed(sample, by_ending)
    if parser is not None and parser.by_ends:
        return signed if signed is not None and _is_another(signed, sample) else by_ending
    if signed is not None:
        return by_ending if parser and not is_of_text and signed in _CONTAINERS else signed
    if not is_text(sample):
        return by_ending if parser and not is_of_text else _weakly_signed(sample)
    if ending == "js" and sample.lstrip().startswith(b"window.YTD."):
        # The files of an archive of X: each is data that a page of it loads.
        return "application/json"
    if is_of_text and by_ending not in (HTML, PLAIN):
        return by_ending
    if ending in _CODE_ENDINGS:
        return PLAIN
    return _text_mime(sample, ending, by_ending)


def _is_another(signed: str, sample: bytes) -> bool:
    """Whether a file that is called a film, say, is of a format that is read for its text."""
    parser = parser_table().by_mime.get(signed)
    if parser is None or parser.by_ends:
        return False
    # A backup may hold documents; a document begins with its own parts.
    return not sample.startswith(_ZIP) or sample[30:].startswith(_DOCUMENT_STARTS)


def bom_encoding(data: bytes) -> str | None:
    """The codec that a byte order mark at the start names; the codec drops the mark."""
    return next((codec for bom, codec in _BOMS if data.startswith(bom)), None)


def is_text(sample: bytes) -> bool:
    """Whether the bytes look like text in some encoding; empty bytes do."""
    codec = bom_encoding(sample)
    if codec is not None and codec != "utf-8-sig":
        return _is_clean(sample, codec)
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    if not controls or unmarked_wide(sample) is not None:
        return True
    if _SHIFTS_KOREAN in sample:
        controls -= sample.count(b"\x0e") + sample.count(b"\x0f")
    try:
        # The sample may end inside a character; an incremental decoder does not mind.
        codecs.getincrementaldecoder("utf-8")("strict").decode(sample)
    except UnicodeDecodeError:
        return controls <= _LEGACY_CONTROL_SHARE_MAX * len(sample)
    return controls <= _UTF8_CONTROL_SHARE_MAX * len(sample)


def _is_clean(sample: bytes, codec: str) -> bool:
    text = sample[: len(sample) // 4 * 4].decode(codec, "replace")
    return len(_CONTROL_CHARS.findall(text)) <= 0.01 * len(text) + 1


def _ending(name: str | None) -> str:
    """The ending of a file's name, lower-case and without the dot; all of a name without one."""
    base = (name or "").replace("\\", "/").rpartition("/")[2]
    return base.rpartition(".")[2].lower() if "." in base else base.lower()


def _signed(sample: bytes, by_ending: str) -> str | None:
    mime = next((mime for sign, mime in _STRONG if sample.startswith(sign)), None)
    if mime == "application/zip":
        if found := _ODF.search(sample):
            # A template says what a document says.
            return found[1].decode().removesuffix("-template")
        if _EPUB in sample:
            return "application/epub+zip"
        formats = [_IN_ZIP[member[1]] for member in _ZIP_MEMBER.finditer(sample)]
        return by_ending if by_ending in formats else next(iter(formats), mime)
    if mime is None and sample[4:8] == b"ftyp":
        return "image/heic" if sample[8:11] in {b"hei", b"mif", b"avi"} else "video/mp4"
    if mime is None and sample[257:262] == b"ustar":
        return "application/x-tar"
    if mime is None and sample.startswith(b"RIFF"):
        return _RIFF.get(sample[8:12])
    return mime


def _weakly_signed(sample: bytes) -> str:
    return next((mime for sign, mime in _WEAK if sample.startswith(sign)), BINARY)


def _text_mime(sample: bytes, ending: str, by_ending: str) -> str:
    """Of textual bytes under a name that does not say what they are."""
    if ending == "pdf":
        # Saved error pages aside, text under this name is a damaged download.
        return HTML if _starts_as(sample, _HTML_START) else PDF
    if _starts_as(sample, _BOOKMARKS_START):
        return "text/x-bookmarks"
    if by_ending == HTML or _starts_as(sample, _HTML_START):
        return HTML
    if ending == "svg" or _starts_as(sample, _SVG_START):
        return "image/svg+xml"
    return PLAIN if by_ending else _mail_mime(sample) or PLAIN


def _mail_mime(sample: bytes) -> str | None:
    """What a file is that begins as a mail or a mailbox does."""
    head = sample[:_MAIL_HEAD_BYTES].replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    postmark, _, rest = head.partition(b"\n")
    is_box = re.fullmatch(rb"From \S.{0,200}\b\d{4}\b.{0,20}", postmark) is not None
    lines = (rest if is_box else head).split(b"\n")
    named = [re.match(rb"([!-9;-~]{1,80}):|[ \t]", line) for line in lines]
    if not all(named[:-1] if len(head) == _MAIL_HEAD_BYTES else named):
        return None
    names = {found[1].lower() for found in named if found and found[1]}
    if b"from" not in names or not names & _MAIL_HEADERS:
        return None
    return "application/mbox" if is_box else "message/rfc822"


def _starts_as(sample: bytes, start: re.Pattern[str]) -> bool:
    """Whether the markup after white space, comments and an XML declaration begins so."""
    codec = bom_encoding(sample) or unmarked_wide(sample) or "latin-1"
    text = sample.decode(codec, "replace")[:_MARKUP_WINDOW_CHARS]
    at = 0
    while True:
        at += len(text[at:]) - len(text[at:].lstrip("\ufeff \t\r\n\f\0"))
        if text.startswith("<!--", at):
            closing = "-->"
        elif text.startswith("<?xml", at):
            closing = "?>"
        else:
            return start.match(text, at) is not None
        end = text.find(closing, at)
        if end < 0:
            return False
        at = end + len(closing)
