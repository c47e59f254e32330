"""What is in a calendar? Its events, tasks and journals (RFC 5545)."""

import re
from collections.abc import Iterator
from typing import Final

from kb.errors import Unparsable
from kb.intake.canonicalize.blocks import escaped, finish, heading
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.model.text import Canonical

MIME: Final = "text/calendar"
_COMPONENTS: Final = ("VEVENT", "VTODO", "VJOURNAL")
_LINE: Final = re.compile(r'([A-Za-z0-9-]{1,60})((?:;(?:[^":;\n]|"[^"\n]*")*)*):(.*)', re.DOTALL)
_CN: Final = re.compile(r';CN=(?:"([^"\n]{1,200})"|([^;:"\n]{1,200}))', re.IGNORECASE)
_ZONE: Final = re.compile(r";TZID=/?\"?([\w/+-]{1,60})", re.IGNORECASE)
_STAMP: Final = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})\d{2}(Z?))?")
_ESCAPE: Final = re.compile(r"\\([nN,;\\])")
_SHOWN: Final = {
    "DTSTART": "When",
    "DTEND": "Until",
    "DUE": "Due",
    "RRULE": "Repeats",
    "EXDATE": "Not on",
    "LOCATION": "Where",
    "ORGANIZER": "Organizer",
    "ATTENDEE": "With",
    "STATUS": "Status",
    "CATEGORIES": "Categories",
    "URL": "Link",
}
_UNITS: Final = {
    "SECONDLY": "second",
    "MINUTELY": "minute",
    "HOURLY": "hour",
    "DAILY": "day",
    "WEEKLY": "week",
    "MONTHLY": "month",
    "YEARLY": "year",
}
_DAYS: Final = {
    "MO": "Monday",
    "TU": "Tuesday",
    "WE": "Wednesday",
    "TH": "Thursday",
    "FR": "Friday",
    "SA": "Saturday",
    "SU": "Sunday",
}
_DAY: Final = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
_ORDINALS: Final = {"1": "first ", "2": "second ", "3": "third ", "4": "fourth ", "-1": "last "}
_RULE_PARTS: Final = frozenset({"FREQ", "INTERVAL", "BYDAY", "UNTIL", "COUNT", "WKST"})
Entry = dict[str, list[str]]


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """A section for each entry: what, when, where, with whom, and its description.

    Raises:
        Unparsable: it is no calendar.
        EmptySource: there is no entry in it.
    """
    text = clean_text(decode_text(data, (charset,) if charset else ())[0])
    if "BEGIN:VCALENDAR" not in text[:4_096].upper():
        raise Unparsable("it is no calendar; export it again", source=name)
    calendar: Entry = {}
    entries = list(_entries(text, calendar))
    blocks = [block for entry in entries for block in _section(entry)]
    title = next(iter(calendar.get("X-WR-CALNAME", [])), "")
    date = None
    if len(entries) == 1:
        title = title or next(iter(entries[0].get("SUMMARY", [])), "")
        date = next(iter(entries[0].get("DTSTART", [])), "")[:10] or None
    return finish(blocks, name, MIME, title=title, date=date, is_titled=False)


def _entries(text: str, calendar: Entry) -> Iterator[Entry]:
    """Each entry's values by name; those outside entries go to `calendar`."""
    entry: Entry | None = None
    inner = 0
    for line in re.sub(r"\n[ \t]", "", text).split("\n"):
        match = _LINE.fullmatch(line.rstrip("\r"))
        if match is None:
            continue
        name, parameters, value = match[1].upper(), match[2], match[3].strip()
        if name == "BEGIN":
            if entry is None and value.upper() in _COMPONENTS:
                entry, inner = {}, 0
            elif entry is not None:
                inner += 1
        elif name == "END" and entry is not None:
            if inner == 0:
                yield entry
                entry = None
            else:
                inner -= 1
        elif inner == 0:
            said = _value(name, parameters, value)
            if said:
                (calendar if entry is None else entry).setdefault(name, []).append(said)


def _value(name: str, parameters: str, value: str) -> str:
    if name in ("DTSTART", "DTEND", "DUE"):
        return _moment(value, parameters)
    if name == "EXDATE":
        return ", ".join(_moment(part, parameters)[:10] for part in value.split(","))
    if name == "RRULE":
        return _repetition(value)
    if name in ("ORGANIZER", "ATTENDEE"):
        named = _CN.search(parameters)
        address = re.sub(r"^mailto:", "", value, flags=re.IGNORECASE)
        return f"{named[1] or named[2]} <{address}>" if named else address
    return _ESCAPE.sub(lambda sign: "\n" if sign[1] in "nN" else sign[1], value).strip()


def _moment(value: str, parameters: str) -> str:
    match = _STAMP.match(value)
    if match is None:
        return value
    year, month, day, hour, minute, is_utc = match.groups()
    date = f"{year}-{month}-{day}"
    if hour is None:
        return date
    zone = _ZONE.search(parameters)
    return f"{date} {hour}:{minute}" + (" UTC" if is_utc else f" {zone[1]}" if zone else "")


def _repetition(rule: str) -> str:
    """A rule as people say it: `every 2 weeks on Thursday until 2027-01-01`; else as it stands."""
    parts = dict(part.upper().partition("=")[::2] for part in rule.split(";"))
    unit, every = _UNITS.get(parts.get("FREQ", "")), parts.get("INTERVAL", "1")
    days = [_DAY.fullmatch(day) for day in filter(None, parts.get("BYDAY", "").split(","))]
    if unit is None or not every.isdecimal() or None in days or not parts.keys() <= _RULE_PARTS:
        return rule
    said = f"every {unit}" if every == "1" else f"every {every} {unit}s"
    names = [
        _ORDINALS.get((day[1] or "").lstrip("+"), f"{day[1]}. " if day[1] else "") + _DAYS[day[2]]
        for day in days
        if day is not None
    ]
    said += f" on {', '.join(names)}" if names else ""
    if until := parts.get("UNTIL"):
        said += f" until {_moment(until, '')[:10]}"
    return f"{said}, {parts['COUNT']} times" if "COUNT" in parts else said


def _section(entry: Entry) -> Iterator[str]:
    yield heading(2, next(iter(entry.get("SUMMARY", [])), "") or "Without a title")
    facts = (f"{said}: {', '.join(entry[key])}" for key, said in _SHOWN.items() if key in entry)
    yield "  \n".join(" ".join(fact.split()) for fact in facts)
    yield from map(escaped, entry.get("DESCRIPTION", []))
