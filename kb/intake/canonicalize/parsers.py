"""Which parser reads which format: kb's own, and those of plugins."""

# Long because each format is a row of one table.

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, cast

import msgspec
from msgspec import Struct

from kb.errors import PluginFailed
from kb.intake.canonicalize.grammars import installed_mimes
from kb.model.code import CODE_MIMES
from kb.model.decoding import convert
from kb.model.doc import Doc
from kb.model.entry_points import InstalledPlugin, failed, installed, load, target_of
from kb.model.file_kinds import NAMED_MIMES
from kb.model.ids import sha256_hex

if TYPE_CHECKING:
    from kb.model.text import Canonical

Read = Callable[[bytes, str, str | None], "Canonical"]
"""The bytes of a source, the name in its errors, and the charset that its server declares."""


class ParserPlugin(Struct, frozen=True, kw_only=True):
    """Says what a parser reads. Reading this record imports no more than its module.

    A parser of a plugin runs in a child process with bounds on memory and time.
    """

    mimes: tuple[str, ...]
    """The formats that it reads. In these it takes the place of kb's own parser."""
    extensions: Mapping[str, str] = {}
    """File name endings, lower-case and without the dot, with the format that each means.

    `kb add FOLDER` takes in files with these endings."""
    read: str
    """`module:function`, which is called as `read(data, name, charset)` and returns a Canonical.

    It is a pure function of its arguments. It raises a SourceError for bytes that it cannot read;
    whatever else it raises counts as Unparsable."""
    fingerprint: str
    """Names what it writes. With another one, docs that it read are read again."""
    is_text: bool = False
    """Whether files of these formats are text, so that other bytes are never its own."""
    is_risky: bool = True
    """For kb's own parsers: whether it needs the child process."""
    keeps_raw: bool = True
    """Whether the home keeps a copy of a file's bytes. Without one kb reads the file again."""
    by_ends: bool = False
    """Whether `data` is only the first 256 KiB and the last 128 KiB of a file that is longer."""
    fallback: str = ""
    """`module:function`, called as `read` is, in a new child after `read` has brought one down."""


PLAIN: Final = "text/plain"
TEXT_CHARS_MAX: Final = 64 << 20
"""More than this is made of no source."""


class TextTooLong(Exception):
    """A source makes more text than TEXT_CHARS_MAX: its reader stops."""


_MARKDOWN_ENDINGS: Final = ("md", "markdown", "mdown", "mdwn", "mkd", "mdx", "qmd", "rmd")
_HTML_ENDINGS: Final = ("htm", "html", "shtml", "xhtml", "xht")
_ROOM: Final = "kb.intake.canonicalize"
_OOXML: Final = "application/vnd.openxmlformats-officedocument."
_ODF: Final = "application/vnd.oasis.opendocument."


def _own(
    module: str,
    *,
    is_text: bool = False,
    keeps_raw: bool = True,
    function: str = "read",
    version: int = 1,
    **mime_of: str,
) -> ParserPlugin:
    return ParserPlugin(
        mimes=tuple(dict.fromkeys(mime_of.values())),
        extensions=mime_of,
        read=f"{_ROOM}.{module}:{function}",
        fingerprint=f"{module.rpartition('.')[2]}-{version}",
        is_text=is_text,
        keeps_raw=keeps_raw,
    )


# Raise a fingerprint by hand with every change that can alter a byte of what the parser returns, an
# upgrade of its library included. Constants, since asking for the versions of installed packages
# costs more than reading ten notes.
BUILT_IN: Final[Mapping[str, ParserPlugin]] = {
    "markdown": ParserPlugin(
        mimes=("text/markdown",),
        extensions=dict.fromkeys(_MARKDOWN_ENDINGS, "text/markdown"),
        read=f"{_ROOM}.markdown:read",
        fingerprint="markdown-5",
        is_text=True,
        is_risky=False,
    ),
    "plain": ParserPlugin(
        mimes=(PLAIN,),
        extensions=dict.fromkeys(("txt", "text"), PLAIN),
        read=f"{_ROOM}.plain:read",
        fingerprint="plain-3",
        is_text=True,
        is_risky=False,
    ),
    "html": ParserPlugin(
        mimes=("text/html", "application/xhtml+xml"),
        extensions=dict.fromkeys(_HTML_ENDINGS, "text/html"),
        read=f"{_ROOM}.html:read",
        fingerprint="html-5",
        is_text=True,
    ),
    "pdf": ParserPlugin(
        mimes=("application/pdf",),
        extensions={"pdf": "application/pdf"},
        read=f"{_ROOM}.pdf.document:read",
        fallback=f"{_ROOM}.pdf.document:read_by_pypdf",
        fingerprint="pdf-5",
    ),
    "docx": _own(
        "docx",
        version=4,
        docx=_OOXML + "wordprocessingml.document",
        docm=_OOXML + "wordprocessingml.document",
        dotx=_OOXML + "wordprocessingml.document",
    ),
    "xlsx": _own(
        "xlsx",
        version=4,
        xlsx=_OOXML + "spreadsheetml.sheet",
        xlsm=_OOXML + "spreadsheetml.sheet",
        xltx=_OOXML + "spreadsheetml.sheet",
    ),
    "pptx": _own(
        "pptx",
        version=3,
        pptx=_OOXML + "presentationml.presentation",
        pptm=_OOXML + "presentationml.presentation",
        ppsx=_OOXML + "presentationml.presentation",
        potx=_OOXML + "presentationml.presentation",
    ),
    "opendocument": _own(
        "odf",
        version=4,
        odt=_ODF + "text",
        ott=_ODF + "text",
        odp=_ODF + "presentation",
        otp=_ODF + "presentation",
    ),
    "opendocument sheets": _own(
        "odf", version=4, ods=_ODF + "spreadsheet", ots=_ODF + "spreadsheet"
    ),
    "flat opendocument": _own(
        "odf",
        version=3,
        function="read_flat",
        is_text=True,
        fodt=_ODF + "flat",
        fods=_ODF + "flat",
        fodp=_ODF + "flat",
    ),
    "epub": _own("epub", version=3, epub="application/epub+zip"),
    "notebook": _own("ipynb", is_text=True, ipynb="application/x-ipynb+json"),
    "mail": ParserPlugin(
        mimes=("message/rfc822",),
        extensions={"eml": "message/rfc822", "emlx": "message/rfc822"},
        read=f"{_ROOM}.eml:read",
        fingerprint="eml-6",
        is_text=True,
    ),
    "outlook mail": _own("msg", version=5, msg="application/vnd.ms-outlook"),
    "old workbook": _own("xls", version=3, xls="application/vnd.ms-excel"),
    "old document": _own("legacy", version=2, function="read_doc", doc="application/msword"),
    "old slides": _own(
        "legacy", version=2, function="read_ppt", ppt="application/vnd.ms-powerpoint"
    ),
    "table": _own("delimited", is_text=True, csv="text/csv", tsv="text/tab-separated-values"),
    "mailbox": _own("mbox", version=5, is_text=True, mbox="application/mbox"),
    "subtitles": _own("subtitles", is_text=True, srt="application/x-subrip", vtt="text/vtt"),
    "calendar": _own("ics", version=3, is_text=True, ics="text/calendar"),
    "json": _own(
        "structured", version=4, is_text=True, function="read_json", json="application/json"
    ),
    "json lines": _own(
        "structured",
        version=4,
        is_text=True,
        function="read_lines",
        jsonl="application/jsonl",
        ndjson="application/jsonl",
    ),
    "yaml": _own(
        "structured",
        is_text=True,
        function="read_yaml",
        yaml="application/yaml",
        yml="application/yaml",
    ),
    "toml": _own("structured", is_text=True, function="read_toml", toml="application/toml"),
    "org": _own("org", is_text=True, org="text/x-org"),
    "restructuredtext": _own("rst", is_text=True, rst="text/x-rst"),
    "asciidoc": _own(
        "asciidoc",
        is_text=True,
        adoc="text/asciidoc",
        asciidoc="text/asciidoc",
        asc="text/asciidoc",
    ),
    "latex": _own("latex", version=2, is_text=True, tex="text/x-tex", latex="text/x-tex"),
    "bibtex": _own("bibtex", is_text=True, bib="text/x-bibtex"),
    "ris": _own("ris", is_text=True, ris="application/x-research-info-systems"),
    "code": ParserPlugin(
        mimes=tuple(dict.fromkeys(CODE_MIMES.values())),
        extensions=CODE_MIMES,
        read=f"{_ROOM}.source_code:read",
        fingerprint="code-1",
        is_text=True,
        is_risky=False,
    ),
    "evernote": _own("enex", version=3, is_text=True, enex="application/x-enex+xml"),
    "joplin": _own("jex", version=2, jex="application/x-jex"),
    "kindle": _own(
        "kindle",
        mobi="application/x-mobipocket-ebook",
        azw="application/x-mobipocket-ebook",
        azw3="application/x-mobipocket-ebook",
    ),
    "visio": _own(
        "visio",
        vsdx="application/vnd.ms-visio.drawing",
        vsdm="application/vnd.ms-visio.drawing",
        vstx="application/vnd.ms-visio.drawing",
    ),
    "djvu": _own(
        "legacy",
        version=2,
        function="read_djvu",
        djvu="application/x-djvu",
        djv="application/x-djvu",
    ),
    "fictionbook": _own("fb2", is_text=True, fb2="application/x-fictionbook+xml"),
    "address book": _own("vcard", version=2, is_text=True, vcf="text/vcard", vcard="text/vcard"),
    "outline": _own("outline", is_text=True, opml="text/x-opml"),
    "bookmarks": ParserPlugin(
        mimes=("text/x-bookmarks",),
        read=f"{_ROOM}.outline:read_bookmarks",
        fingerprint="bookmarks-1",
        is_text=True,
    ),
    "saved page": _own(
        "saved_page",
        version=3,
        function="read_mhtml",
        is_text=True,
        mht="multipart/related",
        mhtml="multipart/related",
    ),
    "web archive": _own(
        "saved_page",
        version=3,
        function="read_web_archive",
        webarchive="application/x-webarchive",
    ),
    "link": _own(
        "shortcut", is_text=True, url="application/x-mswinurl", desktop="application/x-mswinurl"
    ),
    "link of macos": _own("shortcut", function="read_webloc", webloc="application/x-webloc"),
    "canvas": _own(
        "boards", function="read_canvas", is_text=True, canvas="application/x-canvas+json"
    ),
    "excalidraw": _own(
        "boards",
        function="read_excalidraw",
        is_text=True,
        excalidraw="application/x-excalidraw+json",
    ),
    "drawio": _own("boards", function="read_drawio", is_text=True, drawio="application/x-drawio"),
    "svg": _own("boards", function="read_svg", is_text=True, keeps_raw=False, svg="image/svg+xml"),
    "rich text": _own("rtf", version=2, rtf="application/rtf"),
    "picture": _own(
        "pictures.picture",
        keeps_raw=False,
        png="image/png",
        jpg="image/jpeg",
        jpeg="image/jpeg",
        gif="image/gif",
        webp="image/webp",
        tif="image/tiff",
        tiff="image/tiff",
        bmp="image/bmp",
        heic="image/heic",
        heif="image/heic",
        avif="image/heic",
    ),
    "named file": ParserPlugin(
        mimes=tuple(dict.fromkeys(NAMED_MIMES.values())),
        extensions=NAMED_MIMES,
        read=f"{_ROOM}.media.named_file:read",
        fingerprint="named_file-1",
        keeps_raw=False,
        by_ends=True,
    ),
}
"""By name. All run in the child but those of plain text, markdown and source code."""

BY_GRAMMAR: Final = msgspec.structs.replace(
    BUILT_IN["code"],
    read=f"{_ROOM}.grammar:read",
    fallback=BUILT_IN["code"].read,
    fingerprint="code-1+tree-1",
    is_risky=True,
)
"""Reads source code where a grammar for it is installed."""


class ParserTable(Struct, frozen=True, kw_only=True):
    """The parsers that are used, and what is wrong with the others."""

    by_mime: Mapping[str, ParserPlugin]
    mime_of: Mapping[str, str]
    """By the ending of a file's name."""
    used: tuple[tuple[InstalledPlugin, ParserPlugin], ...]
    """The plugins among them."""
    problems: tuple[PluginFailed, ...]

    @property
    def fingerprint(self) -> str:
        """Names what all parsers write, and which one reads which file."""
        writes = sorted((mime, parser.fingerprint) for mime, parser in self.by_mime.items())
        return sha256_hex(repr((writes, sorted(self.mime_of.items()))).encode())

    def is_current(self, doc: Doc, ending: str) -> bool:
        """Whether the bytes of a doc would be read in the same way now.

        A plain text is outdated if there is a parser now for the ending of its file's name, which
        may be "". A doc whose parser is no longer installed stands as it is.
        """
        parser = self.by_mime.get(doc.mime)
        if parser is None:
            return True
        by_ending = self.by_mime.get(self.mime_of.get(ending, ""), parser)
        is_plain = doc.mime == PLAIN and by_ending.is_text
        return (by_ending if is_plain else parser).fingerprint == doc.canonicalizer


@functools.cache
def parser_table() -> ParserTable:
    """The parsers of this installation; made once in a process."""
    return table_of(installed("kb.parsers"))


def table_of(plugins: Iterable[InstalledPlugin]) -> ParserTable:
    """Kb's own parsers and these plugins, which win; of two for one format the first one does."""
    by_mime = {mime: parser for parser in BUILT_IN.values() for mime in parser.mimes}
    by_mime.update(dict.fromkeys(installed_mimes(), BY_GRAMMAR))
    mime_of = {end: mime for parser in BUILT_IN.values() for end, mime in parser.extensions.items()}
    taken: dict[str, str] = {}
    used: list[tuple[InstalledPlugin, ParserPlugin]] = []
    problems: list[PluginFailed] = []
    for plugin in plugins:
        try:
            parser = checked(plugin, load(plugin))
        except PluginFailed as error:
            problems.append(error)
            continue
        names = (*parser.mimes, *(f".{ending}" for ending in parser.extensions))
        doubles = [name for name in names if name in taken]
        if doubles:
            others = ", ".join(f"{name}, as {taken[name]} does" for name in doubles)
            problems.append(failed(plugin, f"is left out: it reads {others}"))
            continue
        taken.update(dict.fromkeys(names, plugin.name))
        by_mime.update(dict.fromkeys(parser.mimes, parser))
        mime_of.update(parser.extensions)
        used.append((plugin, parser))
    return ParserTable(by_mime=by_mime, mime_of=mime_of, used=tuple(used), problems=tuple(problems))


def checked(plugin: InstalledPlugin, value: object) -> ParserPlugin:
    """What a plugin gave, as a parser that runs in the child. Raises PluginFailed."""
    if not isinstance(value, ParserPlugin):
        raise failed(plugin, f"is a {type(value).__name__}, not a kb.plugins.ParserPlugin")
    try:
        parser = convert(msgspec.to_builtins(value), ParserPlugin)
    except (msgspec.ValidationError, TypeError) as error:
        raise failed(plugin, f"has a wrong field: {error}") from error
    if not parser.mimes or not parser.fingerprint or ":" not in parser.read:
        raise failed(plugin, "needs `mimes`, a `fingerprint`, and `read` as module:function")
    strays = [end for end in parser.extensions if end != end.lower().lstrip(".") or not end]
    if strays or not set(parser.extensions.values()) <= set(parser.mimes):
        raise failed(plugin, "has `extensions` with a dot or capitals, or of none of its `mimes`")
    # So that no two plugins' docs, nor kb's own, are taken for each other's.
    fingerprint = f"{plugin.name}:{parser.fingerprint}"
    return msgspec.structs.replace(parser, fingerprint=fingerprint, is_risky=True)


def reader(parser: ParserPlugin, *, is_second: bool = False) -> Read:
    """The function that reads, or its fallback. Raises what its import raises."""
    return cast("Read", target_of(parser.fallback if is_second else parser.read))
