"""What a check found."""

from msgspec import Struct


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that is not as what names it says."""

    place: str
    problem: str
    mend: str
    """What mends it, for a person."""
    repaired: bool = False
    """A check after the repair did not find it again."""


class Checked(Struct, frozen=True, kw_only=True):
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


class CheckReport(Struct, frozen=True, kw_only=True):
    """The outcome of a check."""

    sound: bool
    """Nothing is wrong now: there were no findings, or a repair mended them all."""
    checked: Checked
    findings: tuple[Finding, ...]
    findings_left_out: int = 0
    """Findings past the first thousand."""
