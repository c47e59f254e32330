"""The reports of a check and of a salvage. Field names are JSON output."""

from msgspec import Struct

from kb.store.survey import LostDoc, TableSurvey


class Finding(Struct, frozen=True, kw_only=True):
    """One inconsistency or damage in a home."""

    place: str
    problem: str
    mend: str
    """The repair, described for a person."""
    repaired: bool = False
    """Whether a repair ran and the check after it did not find this again."""


class CheckCounts(Struct, frozen=True, kw_only=True):
    """How many items of each kind were checked."""

    docs: int = 0
    sources: int = 0
    ledger: int = 0
    jobs: int = 0
    chunks: int = 0
    vectors: int = 0
    entities: int = 0
    log: int = 0
    files: int = 0
    lexical_rows: int = 0
    dense_rows: int = 0


class SalvageReport(Struct, frozen=True, kw_only=True):
    """The result of replacing a damaged or missing store by a new one."""

    records: int
    """Records that were copied."""
    docs: int
    """Docs whose records were copied."""
    recovered: int
    """Docs ingested again from raw/: private, with the tag `recovered`."""
    lost: tuple[LostDoc, ...]
    """Docs that could neither be read nor be ingested again."""
    lost_unnamed: int | None
    """How many lost docs nothing names; None if unknown."""
    unusable: tuple[str, ...]
    """Files of raw/ that no doc names and that could not be ingested."""
    tables: tuple[TableSurvey, ...]
    """Tables with unreadable records."""
    kept_as: str
    """Path of the damaged file in the home; empty if there was none."""


class CheckReport(Struct, frozen=True, kw_only=True):
    """The result of a check."""

    sound: bool
    """Nothing is wrong now: there were no findings, or all were repaired."""
    checked: CheckCounts
    findings: tuple[Finding, ...]
    findings_left_out: int = 0
    """Findings past the first thousand."""
    salvaged: SalvageReport | None = None
    """Set if a repair replaced a damaged or missing store."""
