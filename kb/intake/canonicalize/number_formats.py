"""How is a number in a sheet shown? With a percent sign or a currency, as its format says."""

import re
from typing import Final

PERCENT_FORMATS: Final = {9: 0, 10: 2}
"""The formats without a code of their own that show percentages, with their decimals."""
_PERCENT: Final = re.compile(r"[0#](?:\.([0#?]{1,15}))? ?%")
# `"€"`, `[$€-407]`, `[$CHF]` or a bare sign; a sign on its own depends on the reader's system.
_CURRENCY: Final = re.compile(r"\[\$([^\]-]{1,8})[^\]]*\]|\"? ?([$€£¥₹₽₩]) ?\"?")
_ELAPSED: Final = re.compile(r"\[(?:h{1,2}|m{1,2}|s{1,2})\]", re.IGNORECASE)

Unit = int | str
"""The decimals of a percentage, or the sign or the letters of a currency."""


def unit_of(code: str) -> Unit | None:
    """What a format adds to a number; None if it adds nothing."""
    # A format may have sections, of which the first is for positive numbers.
    first = code.partition(";")[0]
    if percent := _PERCENT.search(first):
        return len(percent[1] or "")
    if currency := _CURRENCY.search(first):
        sign = (currency[1] or currency[2]).strip()
        return sign + " " if sign.isalpha() else sign
    return None


def with_unit(text: str, value: float, unit: Unit | None) -> str:
    """A number as its cell shows it; `text` is how it stands without a unit."""
    if isinstance(unit, int):
        return f"{value:.{unit}%}"
    return (unit or "") + text


def is_elapsed(code: str) -> bool:
    """Whether a format shows a length of time, which may be longer than a day."""
    return _ELAPSED.search(code) is not None


def elapsed(days: float) -> str:
    """A length of time as hours, minutes and seconds."""
    minutes, seconds = divmod(round(days * 86_400), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
