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
    extensions: tuple[str, ...] = ()
    """Of a repository: which of its files are taken; empty for every format that has a parser."""
    takes_ignored: bool = False
    """Of a repository: whether what its ignore files name is taken, too."""
