"""Where does a file lead that is a link to a page? Its name, and the address."""

import re
from typing import Final

from kb.errors import Unparsable
from kb.intake.canonicalize.blocks import finish
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.saved_page import plist
from kb.intake.canonicalize.title import fallback_title
from kb.model.text import Canonical

MIME: Final = "application/x-mswinurl"
WEBLOC: Final = "application/x-webloc"
_FIELD: Final = re.compile(r"(?m)^(URL|Name|Comment|Exec)=(.{1,4000})$")


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """A link of Windows or of a Linux desktop. Raises Unparsable for what leads nowhere."""
    text = clean_text(decode_text(data, (charset,) if charset else ())[0])
    fields: dict[str, str] = {}
    for field in _FIELD.finditer(text):
        fields.setdefault(field[1], field[2].strip())
    leads = fields.get("URL") or fields.get("Exec")
    if not leads:
        raise Unparsable("it names no address", source=name)
    title = fields.get("Name") or fallback_title(name, "")
    return finish((title, fields.get("Comment", ""), leads), name, MIME, title=title)


def read_webloc(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """A link of macOS. Raises as `read`."""
    address = plist(data, name).get("URL")
    if not isinstance(address, str):
        raise Unparsable("it names no address", source=name)
    return finish((fallback_title(name, ""), address), name, WEBLOC)
