"""Which formats have a reader? One line each, for the table of parsers."""

from typing import Final

from msgspec import Struct

_OOXML: Final = "application/vnd.openxmlformats-officedocument."
_ODF: Final = "application/vnd.oasis.opendocument."
_HERE: Final = "kb.intake.canonicalize."


class Format(Struct, frozen=True, kw_only=True):
    """A format, and what reads it."""

    name: str
    mimes: tuple[str, ...]
    extensions: tuple[str, ...]
    reader: str
    """`module:function`; imported when a file of this format is read."""
    fingerprint: str
    """Changes when the reader makes other markdown of the same bytes."""
    risky: bool
    """Whether it belongs into a child process."""


def _format(name: str, mimes: str, extensions: str, module: str, *, risky: bool = True) -> Format:
    return Format(
        name=name,
        mimes=tuple(mimes.split()),
        extensions=tuple(extensions.split()),
        reader=f"{_HERE}{module}:read",
        fingerprint=f"{name}-1",
        risky=risky,
    )


FORMATS: Final = (
    _format("docx", _OOXML + "wordprocessingml.document", ".docx", "docx"),
    _format("xlsx", _OOXML + "spreadsheetml.sheet", ".xlsx", "xlsx"),
    _format("pptx", _OOXML + "presentationml.presentation", ".pptx", "pptx"),
    _format("epub", "application/epub+zip", ".epub", "epub"),
    _format("ipynb", "application/x-ipynb+json", ".ipynb", "ipynb"),
    _format("eml", "message/rfc822", ".eml", "eml"),
    _format("odt", _ODF + "text", ".odt", "odf"),
    _format("ods", _ODF + "spreadsheet", ".ods", "odf"),
    _format("odp", _ODF + "presentation", ".odp", "odf"),
    _format("csv", "text/csv", ".csv", "delimited", risky=False),
    _format("tsv", "text/tab-separated-values", ".tsv", "delimited", risky=False),
)
