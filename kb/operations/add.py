"""Files, folders, pages and standard input, taken into an open home."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final, Protocol

import msgspec
from msgspec import Meta, Struct

from kb.errors import UsageError
from kb.intake.sync.report import AddReport, SourceProblem
from kb.model import doc
from kb.model.source import is_repository

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.intake.canonicalize import Parser
    from kb.intake.ingest.request import IngestOptions
    from kb.intake.sync.add import AddOptions
    from kb.intake.sync.expand import SourceExpander

Visibility = doc.Visibility
VISIBILITIES: Final = doc.VISIBILITIES
AddResult = AddReport
"""What became of every source that was seen."""
AddProblem = SourceProblem
"""A source that was not taken in, or not completely."""


class AddRequest(Struct, frozen=True, kw_only=True):
    """How sources are taken in, and what is said of them; None leaves what was said before."""

    extensions: tuple[str, ...] = ()
    """What is taken from folders; none leaves that to the settings."""
    no_ignore: bool = False
    """Take from folders also what git ignores, installed packages and lock files."""
    title: str | None = None
    tags: tuple[str, ...] | None = None
    visibility: Visibility | None = None
    accept_deletions: bool = False
    """Remove docs of mails that are gone from a mailbox, however many there are."""
    dry_run: bool = False
    """Say what would be done, and do nothing."""
    crawl: bool = False
    """Take in the pages of the sites whose addresses are given, and keep them current."""
    include: tuple[str, ...] = ()
    """With `crawl`: globs of the paths that are taken; without any, what is below the start."""
    exclude: tuple[str, ...] = ()
    """With `crawl`: globs of the paths that are left out."""
    pages_max: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """With `crawl`: how many pages become docs at most; 0 leaves that to `crawl.pages_max`."""
    depth_max: Annotated[int, Meta(ge=0, le=100)] = 0
    """With `crawl`: how many links lead to a page at most; 0 leaves that to `crawl.depth_max`."""


class SourceAdder(Protocol):
    """Takes the sources of one call in."""

    def add(
        self,
        sources: Iterable[str],
        *,
        stdin_fd: int = 0,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> AddResult:
        """Take every source in; `on_progress` hears (done, total).

        What is committed stays if this is interrupted: `report` says what became of it so far. A
        source that fails is counted, and stops no other. Raises what keeps the home or the server
        from taking anything in, as StoreFull.
        """
        ...

    def report(self) -> AddResult:
        """What became of the sources so far."""
        ...


def check_title(request: AddRequest, sources: Sequence[str], shown: str) -> None:
    """Raise UsageError where options do not fit the sources.

    A title, `shown` to the caller so, is for one source; what is said of sites is for sites.
    """
    if request.title and (len(sources) > 1 or folders_among(sources)):
        raise UsageError(f"{shown} is for a single source, and no folder")
    if request.title and repositories_among(sources):
        raise UsageError(f"{shown} is for a single source, and no repository")
    if request.crawl:
        _check_sites(request, sources, shown)
    elif request.include or request.exclude or request.pages_max or request.depth_max:
        raise UsageError("include, exclude and the limits of pages are for sites; say crawl, too")


def _check_sites(request: AddRequest, sources: Sequence[str], shown: str) -> None:
    if request.title:
        raise UsageError(f"{shown} is for a single source, and no site")
    for source in sources:
        if not source.startswith(("http://", "https://")):
            raise UsageError(f"{source} is no address of a site; one begins with https://")
    for glob in (*request.include, *request.exclude):
        if "://" in glob:
            raise UsageError(f"{glob} is an address; give a path of the site, such as /docs/*")


def folders_among(sources: Iterable[str]) -> list[str]:
    """Those of the sources that are folders."""
    return [source for source in sources if os.path.isdir(os.path.expanduser(source))]


def repositories_among(sources: Iterable[str]) -> list[str]:
    """Those of the sources that are addresses of repositories."""
    return [source for source in sources if is_repository(source)]


@contextlib.contextmanager
def text_source(text: str) -> Iterator[IO[bytes]]:
    """A file inside the block from which a text is read as standard input is.

    Raises UsageError for what is no text.
    """
    if not isinstance(text, str):
        raise UsageError(f"text: Expected `str`, got `{type(text).__name__}`")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"character {error.start} of the text is half of one") from error
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


@contextlib.contextmanager
def adder(app: "App", request: AddRequest) -> Iterator[SourceAdder]:
    """What takes sources into the home, inside the block; to be found they still need workers."""
    from kb.intake.sync.add import AddOptions

    settings = app.settings.ingest
    options = AddOptions(
        recursive=True,
        extensions=request.extensions or settings.folder_extensions,
        takes_ignored=request.no_ignore,
        ingest_options=ingest_options_of(request, app.caller.own_name),
        dry_run=request.dry_run,
        accept_deletions=request.accept_deletions,
        file_bytes_max=settings.file_bytes_max,
        home=Path(os.path.realpath(app.paths.root)),
    )
    with app.parser() as parser:
        yield _page_adder(app, parser, request, options)


def _page_adder(
    app: "App", parser: "Parser", request: AddRequest, options: "AddOptions"
) -> SourceAdder:
    """What takes sites in, or else files, pages and feeds."""
    from kb.intake.crawl.adders import FeedAdder, SiteAdder
    from kb.intake.crawl.options import TakeOptions
    from kb.model.site import SiteOptions

    take = TakeOptions(
        ingest_options=options.ingest_options,
        dry_run=options.dry_run,
        extensions=options.extensions,
        takes_ignored=options.takes_ignored,
    )
    if not request.crawl:
        return FeedAdder(app.adder(parser, options), lambda: app.sites(parser), take)
    site = SiteOptions(
        include=request.include,
        exclude=request.exclude,
        pages_max=request.pages_max,
        depth_max=request.depth_max,
    )
    return SiteAdder(app.sites(parser), site, take)


def with_transaction(app: "App", report: AddResult) -> AddResult:
    """The report with the token of all that was written for it until now."""
    return msgspec.structs.replace(report, transaction=app.transactions.token())


def with_failed_jobs(app: "App", report: AddResult) -> AddResult:
    """The report with the docs that went in, but whose jobs ended for good, as failures."""
    from kb.intake.sync.report import with_failed
    from kb.store.jobs import queue

    with app.store.read() as txn:
        reasons = {job.doc_id: job.last_error or "unknown" for job in queue.failed(txn)}
    return with_failed(report, reasons)


def ingest_options_of(request: AddRequest, owner: str | None = None) -> "IngestOptions":
    """What the request says of its sources, for whoever takes them in as `owner`'s.

    Without an owner the docs are those of the local user, or of whom a server knows by their token.
    """
    from kb.intake.ingest.request import IngestOptions

    return IngestOptions(
        title=request.title, tags=request.tags, visibility=request.visibility, owner=owner
    )


def naming_of(
    request: AddRequest, extensions: tuple[str, ...], home: Path | None = None
) -> "SourceExpander":
    """Makes sources of what is named; of folders `extensions`, where the request names none.

    `home` is not entered.
    """
    from kb.intake.sync.expand import SourceExpander

    extensions = request.extensions or extensions
    return SourceExpander(
        recursive=True, extensions=extensions, home=home, ignoring=not request.no_ignore
    )


def count_files(
    request: AddRequest, extensions: tuple[str, ...], folders: Iterable[str], home: Path
) -> int:
    """How many files of these folders would be looked at."""
    from kb.intake.sync.items import SourceItem

    naming = naming_of(request, extensions, Path(os.path.realpath(home)))
    items = naming.items(folders)
    return sum(isinstance(item, SourceItem) for item in items)
