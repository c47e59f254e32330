"""Count docs by month: how a home has grown, or which times its docs are of."""

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct

from kb.model.doc import Scope
from kb.model.search import Filters
from kb.operations.fields import FILTER_BOUNDS, ROWS
from kb.operations.operation import Address, Operation

if TYPE_CHECKING:
    from kb.home.spaces.spaces import Spaces
    from kb.model.doc import Doc

_MONTH_CHARS: Final = len("2026-01")


class GrowthRequest(Filters, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which docs are counted, and by which of their times."""

    by: Annotated[
        Literal["added", "date"],
        Meta(description="Count by when docs were added, or by their own date."),
    ] = "added"
    limit: Annotated[int, Meta(ge=1, description="How many months, to the last with a doc.")] = 24


class MonthCount(Struct, frozen=True, kw_only=True):
    """The docs of one month."""

    month: str
    """YYYY-MM, in UTC."""
    docs: int
    total: int
    """With those of every month before."""


class Growth(Struct, frozen=True, kw_only=True):
    """Docs by month, the earliest first, months without a doc included."""

    months: tuple[MonthCount, ...]
    without_month: int
    """Docs that have no date, or only a year."""
    warnings: tuple[str, ...]


def run(spaces: "Spaces", request: GrowthRequest, scope: Scope) -> Growth:
    """Count the active docs of every space that a scope sees.

    Raises NotFound and AmbiguousId for a doc that is named, and a space's own error where none can
    be read.
    """
    from kb.home.spaces.each import warnings_of
    from kb.operations.list_docs import matching_in_spaces

    failed = list(spaces.failed)
    pairs = matching_in_spaces(spaces, request.filters, scope, failed)
    counts = Counter(_month(doc, request.by) for _, doc in pairs)
    without_month = counts.pop(None, 0)
    return Growth(
        months=_counted({month: n for month, n in counts.items() if month}, request.limit),
        without_month=without_month,
        warnings=warnings_of(failed, scope),
    )


def _month(doc: "Doc", by: Literal["added", "date"]) -> str | None:
    if by == "added":
        return dt.datetime.fromtimestamp(doc.added_ms / 1000, dt.UTC).isoformat()[:_MONTH_CHARS]
    return doc.date[:_MONTH_CHARS] if doc.date and len(doc.date) >= _MONTH_CHARS else None


def _counted(counts: dict[str, int], limit: int) -> tuple[MonthCount, ...]:
    """The last months, each with the sum to its end."""
    if not counts:
        return ()
    shown: list[MonthCount] = []
    total, month = sum(counts.values()), max(counts)
    while len(shown) < limit and total:
        shown.append(MonthCount(month=month, docs=counts.get(month, 0), total=total))
        total -= counts.get(month, 0)
        month = _before(month)
    return tuple(reversed(shown))


def _before(month: str) -> str:
    year, _, number = month.partition("-")
    return f"{year}-{int(number) - 1:02}" if number != "01" else f"{int(year) - 1:04}-12"


GROWTH: Final = Operation(
    name="growth",
    summary="Count docs by month.",
    request=GrowthRequest,
    results=(Growth,),
    run=run,
    example="kb growth --by date --tag house",
    addresses=(
        Address(
            path="/v1/growth",
            summary="Count docs by the month they were added, or by that of their own date.",
            request=GrowthRequest,
            result=Growth,
            run=run,
            bounds={**FILTER_BOUNDS, "limit": ROWS},
        ),
    ),
)
