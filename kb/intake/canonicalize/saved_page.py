"""What does a page say that a browser saved as one file? Its main part, read as any page."""

import email
import email.policy
import plistlib
from typing import Any, Final
from xml.parsers.expat import ExpatError

import msgspec

from kb.errors import Unparsable
from kb.intake.canonicalize import html
from kb.model.text import Canonical

MHTML: Final = "multipart/related"
WEB_ARCHIVE: Final = "application/x-webarchive"
_PAGES: Final = ("text/html", "application/xhtml+xml")
_PARTS_MAX: Final = 5_000


def read_mhtml(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The first page of an MHTML file.

    Raises:
        Unparsable: there is no page in it.
        EmptySource: no text is visible on it.
    """
    whole = email.message_from_bytes(data, policy=email.policy.compat32)
    for part, _ in zip(whole.walk(), range(_PARTS_MAX), strict=False):
        page = part.get_payload(decode=True)
        if part.get_content_type() in _PAGES and isinstance(page, bytes):
            return _read(page, name, part.get_content_charset(), MHTML)
    raise Unparsable("it has no page in it; save it again", source=name)


def read_web_archive(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The main page of an archive of Safari. Raises as `read_mhtml`."""
    main = plist(data, name).get("WebMainResource")
    page = main.get("WebResourceData") if isinstance(main, dict) else None
    if not isinstance(main, dict) or not isinstance(page, bytes):
        raise Unparsable("it has no page in it; save it again", source=name)
    declared = main.get("WebResourceTextEncodingName")
    return _read(page, name, declared if isinstance(declared, str) else None, WEB_ARCHIVE)


def plist(data: bytes, name: str) -> dict[str, Any]:
    """A property list of Apple's, which is a dictionary. Raises Unparsable."""
    try:
        value = plistlib.loads(data)
    except (ValueError, ExpatError) as error:
        raise Unparsable("it is damaged; save it again", source=name) from error
    if not isinstance(value, dict):
        raise Unparsable("it is damaged; save it again", source=name)
    return value


def _read(page: bytes, name: str, charset: str | None, mime: str) -> Canonical:
    return msgspec.structs.replace(html.read(page, name, charset), mime=mime)
