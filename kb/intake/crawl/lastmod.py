"""When did a page last change, as its sitemap says it?"""

import datetime as dt
import re
from typing import Final

_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_DAY_MS: Final = 86_400_000
# A date alone may be of any time zone.
_ZONE_MS: Final = 14 * 3_600_000
_SECOND_MS: Final = 1_000


def is_settled(lastmod: str, asked_ms: int) -> bool:
    """Whether the page was asked for after all changes that the sitemap can mean.

    A page may change again on the day that a date names, or in the second of a time.
    """
    end_ms = _end_ms(lastmod)
    return end_ms is not None and end_ms < asked_ms


def _end_ms(lastmod: str) -> int | None:
    """The end of the day or second that is named; None for what is neither."""
    match = _DATE.fullmatch(lastmod)
    try:
        if match is not None:
            day = dt.datetime(int(match[1]), int(match[2]), int(match[3]), tzinfo=dt.UTC)
            return int(day.timestamp() * 1000) + _DAY_MS + _ZONE_MS
        at = dt.datetime.fromisoformat(lastmod)
        if at.tzinfo is None:
            return int(at.replace(tzinfo=dt.UTC).timestamp() * 1000) + _ZONE_MS
        return int(at.timestamp() * 1000) + _SECOND_MS
    except (ValueError, OverflowError):
        return None
