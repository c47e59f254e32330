"""Who is in an address book? Each card is a section: how to reach somebody, and what is noted."""

import quopri
import re
from collections.abc import Iterator
from typing import Final

from kb.errors import Unparsable
from kb.intake.canonicalize.blocks import escaped, finish, heading
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.model.text import Canonical

MIME: Final = "text/vcard"
_LINE: Final = re.compile(
    r'(?:[\w-]{1,60}\.)?([A-Za-z0-9-]{1,60})((?:;(?:[^":;\n]|"[^"\n]{0,200}"){0,300}){0,20}):(.*)',
    re.DOTALL,
)
_TYPE: Final = re.compile(r"(?:^|;)(?:TYPE=)?\"?([\w,-]{1,60})", re.IGNORECASE)
_ESCAPE: Final = re.compile(r"\\([nN,;:\\])")
_SHOWN: Final = {
    "NICKNAME": "Called",
    "ORG": "Organization",
    "TITLE": "Title",
    "ROLE": "Role",
    "TEL": "Phone",
    "EMAIL": "E-mail",
    "ADR": "Address",
    "URL": "Web",
    "IMPP": "Chat",
    "BDAY": "Born",
    "CATEGORIES": "Categories",
}
_PLACES: Final = {"HOME": "home", "WORK": "work", "CELL": "mobile", "FAX": "fax"}
_VALUES_MAX: Final = 50
Card = dict[str, list[str]]


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """A section for each card; pictures and keys are left out.

    Raises:
        Unparsable: it is no address book.
        EmptySource: there is no card in it.
    """
    text = clean_text(decode_text(data, (charset,) if charset else ())[0])
    if "BEGIN:VCARD" not in text[:4_096].upper():
        raise Unparsable("it is no address book; export it again", source=name)
    cards = list(_cards(text))
    blocks = [block for card in cards for block in _section(card)]
    title = _name(cards[0]) if len(cards) == 1 else ""
    return finish(blocks, name, MIME, title=title, is_titled=False)


def _cards(text: str) -> Iterator[Card]:
    card: Card = {}
    for line in _unfolded(text):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        key, parameters, value = match[1].upper(), match[2].upper(), match[3].strip()
        if key == "BEGIN":
            card = {}
        elif key == "END":
            yield card
        elif key in ("FN", "N", "NOTE", *_SHOWN) and len(card.get(key, ())) < _VALUES_MAX:
            card.setdefault(key, []).append(_value(key, parameters, value))


def _unfolded(text: str) -> Iterator[str]:
    """The lines: one goes on after a blank, and quoted-printable after a `=` at its end."""
    held = ""
    for line in re.sub(r"\n[ \t]", "", text).split("\n"):
        if line.endswith("=") and (held or "QUOTED-PRINTABLE" in line[:200].upper()):
            held += line[:-1]
        else:
            yield held + line
            held = ""


def _value(key: str, parameters: str, value: str) -> str:
    if "QUOTED-PRINTABLE" in parameters:
        declared = re.search(r"CHARSET=([\w-]{2,40})", parameters)
        stored = quopri.decodestring(value.encode("utf-8", "replace"))
        value = decode_text(stored, (declared[1],) if declared else ())[0]
    if key in ("ADR", "ORG", "N"):
        parts = [part.strip() for part in re.split(r"(?<!\\);", value)]
        if key == "N":
            parts = [*parts[3:4], *parts[1:3], *parts[:1], *parts[4:]]
        value = (" " if key == "N" else ", ").join(filter(None, parts))
    if key == "BDAY":
        value = iso_date(value) or value
    said = _ESCAPE.sub(lambda sign: "\n" if sign[1] in "nN" else sign[1], value).strip()
    kinds = {_PLACES.get(word) for found in _TYPE.findall(parameters) for word in found.split(",")}
    place = next(iter(sorted(filter(None, kinds))), "")
    return f"{said} ({place})" if place and said and key in ("TEL", "EMAIL", "ADR") else said


def _name(card: Card) -> str:
    names = (*card.get("FN", ()), *card.get("N", ()), *card.get("ORG", ()), *card.get("EMAIL", ()))
    return next(filter(None, names), "")


def _section(card: Card) -> Iterator[str]:
    yield heading(2, _name(card)) or "## Without a name"
    facts = (
        f"{said}: {', '.join(filter(None, card[key]))}"
        for key, said in _SHOWN.items()
        if any(card.get(key, ()))
    )
    yield "  \n".join(" ".join(fact.split()) for fact in facts)
    yield from map(escaped, card.get("NOTE", ()))
