"""Parsing of the Retry-After header."""

import re
from typing import Final

RETRY_AFTER_S_MAX: Final = 86_400


def retry_after_s(value: str | None, now_ms: int) -> int | None:
    """The wait of a Retry-After header (seconds or a date) in seconds, at most a day.

    None if the header is missing or invalid.
    """
    text = (value or "").strip()
    if re.fullmatch("[0-9]{1,18}", text):
        return min(int(text), RETRY_AFTER_S_MAX)
    if not 0 < len(text) <= 64:
        return None
    import datetime as dt
    import email.utils

    try:
        date = email.utils.parsedate_to_datetime(text)
        if date.tzinfo is None:
            date = date.replace(tzinfo=dt.UTC)
        wait_s = -(-(round(date.timestamp() * 1000) - now_ms) // 1000)
    except (ValueError, OverflowError):
        return None
    return min(max(wait_s, 0), RETRY_AFTER_S_MAX)
