"""When does an exported chat end? Each of its messages begins with a day, a time and a name."""

import re
from datetime import date
from typing import Final

# WhatsApp writes as the phone is set: `04/06/2022, 08:01 - Ada: `, `[04.06.22, 08:01:10] Ada: `.
_MESSAGE: Final = re.compile(
    r"^[\u200e\u202a]?\[?(\d{1,4})([./-])(\d{1,2})\2(\d{2,4}),?[ \u202f]\d{1,2}[:.]\d{2}"
    r"[^\n:]{0,12}(?::\d{2}[^\n:\]]{0,6})?(?:\] | - )",
    re.MULTILINE | re.ASCII,
)
_MESSAGES_MIN: Final = 2
_CENTURY: Final = 2_000


def chat_date(text: str) -> str | None:
    """The day of the last message of a text that begins as a chat does, ISO 8601; else None.

    A day that may be read in two ways is read as its neighbours say, else with the month second.
    """
    if _MESSAGE.match(text) is None:
        return None
    days = [(int(m[1]), int(m[3]), int(m[4])) for m in _MESSAGE.finditer(text)]
    if len(days) < _MESSAGES_MIN:
        return None
    first, second, third = days[-1]
    if first > _CENTURY:
        year, month, day = first, second, third
    else:
        is_month_first = any(two > 12 for _, two, _ in days) and all(
            one <= 12 for one, _, _ in days
        )
        day, month = (second, first) if is_month_first else (first, second)
        year = third + (0 if third > _CENTURY else _CENTURY)
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None
