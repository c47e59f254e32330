"""What is asked of a call that takes pages."""

from msgspec import Struct

from kb.intake.ingest.request import IngestOptions


class TakeOptions(Struct, frozen=True, kw_only=True):
    """How the pages of one call are taken."""

    ingest_options: IngestOptions = IngestOptions()
    dry_run: bool = False
    """Nothing is written, neither docs nor what is known of pages."""
    revive: bool = True
    """Whether docs that a person removed come back."""
