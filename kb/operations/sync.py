"""Folders and pages of an open home, brought level with what they are now."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from kb.intake.sync.report import SourceLine, SyncReport

if TYPE_CHECKING:
    from kb.home.app import App

SourceResult = SourceLine
"""What became of one source."""
SyncResult = SyncReport
"""The results of the sources, and their sums."""


class SyncRequest(Struct, frozen=True, kw_only=True):
    """Which sources are brought level, and how."""

    interval_min: Annotated[int, Meta(ge=0)] = 20
    """Only sources that were not synced for so many minutes."""
    sources_max: Annotated[int, Meta(ge=1)] | None = None
    only: str | None = None
    """Id or place of the one source that is meant, due or not."""
    accept_deletions: bool = False
    """Remove docs however many have vanished."""
    dry_run: bool = False


def run(
    app: "App",
    request: SyncRequest,
    on_source: Callable[[SourceResult], None] | None = None,
) -> SyncResult:
    """Bring the sources level that are due; `on_source` hears what became of each.

    One source's failure is its own. Of a folder that lost many docs none is removed unless the
    request accepts that: the result says that it is held back. Raises UnknownSource or AmbiguousId
    for what `only` names, and StoreFull or ReadOnlyHome, which end the run.
    """
    from kb.intake.sync.sync_all import SyncOptions

    options = SyncOptions(
        interval_min=request.interval_min,
        sources_max=request.sources_max,
        only=request.only,
        dry_run=request.dry_run,
        accept_deletions=request.accept_deletions,
        file_bytes_max=app.settings.ingest.file_bytes_max,
        home=Path(os.path.realpath(app.paths.root)),
    )
    with app.parser() as parser:
        return app.syncer(parser, options).run(on_line=on_source)
