"""Options that say days: `--since`, `--until`, and `--on`, which is both. Pure."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from kb.model.days import span_of


def with_days(options: Mapping[str, Any], today: dt.date) -> dict[str, Any]:
    """Options with `since` and `until` as dates; `on` a period is from and to it.

    Raises UsageError for words that are no date.
    """
    changed = dict(options)
    spans = {
        name: span_of(options[name], today, f"--{name}")
        for name in ("since", "until", "on")
        if options[name]
    }
    on = spans.pop("on", None)
    firsts = [span[0] for span in (spans.get("since"), on) if span]
    lasts = [span[1] for span in (spans.get("until"), on) if span]
    changed["since"] = max(firsts, default=None)
    changed["until"] = min(lasts, default=None)
    return changed
