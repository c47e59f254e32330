"""Sources that are read here and taken in by a server, every file accounted for."""

import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from kb.client.http_client import Body, Query, ServerClient
from kb.client.problems import NotTaken, ServerBusy, TooMuch
from kb.client.waiting import docs_done
from kb.errors import SourceError, TooLarge
from kb.intake.canonicalize import may_read_ends
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.expand import SourceExpander
from kb.intake.sync.items import SkippedItem, SourceItem
from kb.intake.sync.read import read_file, read_stream
from kb.intake.sync.report import AddReport, Outcome, Tally, with_failed
from kb.model.doc import Visibility
from kb.model.ids import DocId
from kb.model.source import file_lsid

_BINARY: Final = "application/octet-stream"
_UNFIT: Final = re.compile(r"[/\\\x00-\x1f\x7f]")
# A page is fetched, a file parsed, and others may be before us.
_TAKE_S: Final = 300.0
# So long, and no longer, while others are before us.
_BUSY_TRIES: Final = 60
_BUSY_S: Final = 1.0
_NOT_FINDABLE: Final = "added, but indexing it failed; `kb job ls` on the server says why"


class _PageAsked(Struct, frozen=True, kw_only=True):
    url: str
    tags: tuple[str, ...]
    visibility: Visibility | None
    title: str | None


_BY_NAME: Final = "found by its name alone, and all of it would be sent; name it to send it"


class _Taken(Struct, frozen=True, kw_only=True):
    doc_id: DocId
    status: Outcome
    warnings: tuple[str, ...] = ()


class RemoteAdder:
    """Hands the sources of one call to a server."""

    def __init__(
        self,
        client: ServerClient,
        naming: SourceExpander,
        ingest_options: IngestOptions,
        *,
        file_bytes_max: int,
        host: str,
    ) -> None:
        """`host` is what this machine is called: files are known by it and their path again."""
        self._wire = client
        self._naming = naming
        self._ingest_options = ingest_options
        self._file_bytes_max = file_bytes_max
        self._host = host
        self._tally = Tally()
        self._waited: dict[DocId, None] = {}

    def add(
        self,
        sources: Iterable[str],
        *,
        stdin_fd: int = 0,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> AddReport:
        """Hand every source in; `on_progress` hears (done, total).

        What the server has taken in stays there if this is interrupted. Raises ServerError where
        the server, not a source, is at fault.
        """
        items = list(self._naming.items(sources))
        for done, item in enumerate(items, 1):
            if isinstance(item, SkippedItem):
                self._tally.left(item.name, "failed" if item.failed else "skipped", item.reason)
            else:
                self._add_one(item, stdin_fd)
            if on_progress:
                on_progress(done, len(items))
        return self.report()

    def wait(self, on_left: Callable[[int], None] | None = None) -> AddReport:
        """The report once all of it can be found, or is known never to be. Raises ServerError."""
        standings = docs_done(self._wire, list(self._waited), on_left)
        reasons = {
            standing.doc_id: standing.reason or _NOT_FINDABLE
            for standing in standings
            if standing.state == "failed"
        }
        return with_failed(self.report(), reasons)

    def report(self) -> AddReport:
        """What became of the sources so far."""
        report = self._tally.report()
        return msgspec.structs.replace(report, transaction=self._wire.transaction or None)

    def _add_one(self, item: SourceItem, stdin_fd: int) -> None:
        try:
            taken = self._taken(item, stdin_fd)
        except (NotTaken, SourceError) as error:
            by_rule = isinstance(error, TooLarge | TooMuch) and not item.is_explicit
            reason = error.reason if isinstance(error, SourceError) else str(error)
            self._tally.left(item.name, "skipped" if by_rule else "failed", reason)
        else:
            if taken is not None:
                for warning in taken.warnings:
                    self._tally.note(item.name, "added", warning)
                self._tally.took(item.name, taken.doc_id, taken.status)
                self._waited[taken.doc_id] = None

    def _taken(self, item: SourceItem, stdin_fd: int) -> _Taken | None:
        """What became of a source; None where it is accounted for without the server."""
        ingest_options = self._ingest_options
        if item.url is not None:
            request = _PageAsked(
                url=item.url,
                tags=ingest_options.tags or (),
                visibility=ingest_options.visibility,
                title=ingest_options.title,
            )
            return self._patient("/v1/docs", request)
        if item.path is None:
            data = read_stream(stdin_fd, self._file_bytes_max, item.name)
            return self._handed_in(data, ())
        if item.is_walked and may_read_ends(item.path.name):
            self._tally.left(item.name, "skipped", _BY_NAME)
            return None
        data, _ = read_file(item.path, self._file_bytes_max, 0, listed=item.is_walked)
        if not data.strip() and not item.is_explicit:
            self._tally.left(item.name, "skipped", "it is empty")
            return None
        return self._handed_in(data, self._place(item.path, item.name))

    def _place(self, path: Path, name: str) -> Query:
        plain = _UNFIT.sub("_", path.name.encode("utf-8", "replace").decode())
        shown = name if name.isprintable() else file_lsid(path)
        return ("name", plain), ("place", f"{self._host}:{shown}")

    def _handed_in(self, data: bytes, place: Query) -> _Taken:
        ingest_options = self._ingest_options
        options = (("title", ingest_options.title), ("visibility", ingest_options.visibility))
        tags = (("tag", tag) for tag in ingest_options.tags or ())
        query = (*place, *tags, *((name, value) for name, value in options if value))
        body = Body(data=data, media=_BINARY)
        return self._patient("/v1/files", body, query)

    def _patient(self, path: str, body: Struct | Body, query: Query = ()) -> _Taken:
        """What the server says once it has a place for this. Raises as `ServerClient.post` does."""
        for _ in range(_BUSY_TRIES):
            try:
                return self._wire.post(path, body, _Taken, query, wait_s=_TAKE_S)
            except ServerBusy:
                time.sleep(_BUSY_S)
        return self._wire.post(path, body, _Taken, query, wait_s=_TAKE_S)
