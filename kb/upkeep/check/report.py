"""What a check found."""

from msgspec import Struct

from kb.store.survey import LostDoc, TableSurvey


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that is not as what names it says."""

    place: str
    problem: str
    mend: str
    """What mends it, for a person."""
    repaired: bool = False
    """A check after the repair did not find it again."""


class CheckCounts(Struct, frozen=True, kw_only=True):
    """How many of each were looked at."""

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
    """What became of a store that was damaged or gone."""

    records: int
    """Those that came over."""
    docs: int
    """Those whose records came over."""
    recovered: int
    """Those taken in again from raw/: private, and marked `recovered`."""
    lost: tuple[LostDoc, ...]
    """Those that could neither be read nor be taken in again at their place."""
    lost_unnamed: int | None
    """Records of docs that nothing names; None where it cannot be told how many there were."""
    unusable: tuple[str, ...]
    """Files of raw/ that no doc names, and that could not be taken in again."""
    tables: tuple[TableSurvey, ...]
    """Those of which something could not be read."""
    kept_as: str
    """Where the damaged file lies now; empty where there was none."""


class CheckReport(Struct, frozen=True, kw_only=True):
    """The outcome of a check."""

    sound: bool
    """Nothing is wrong now: there were no findings, or a repair mended them all."""
    checked: CheckCounts
    findings: tuple[Finding, ...]
    findings_left_out: int = 0
    """Findings past the first thousand."""
    salvaged: SalvageReport | None = None
    """What became of a store that was damaged or gone, where a repair put another in its place."""
