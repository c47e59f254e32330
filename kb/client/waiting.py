"""Waiting until a server has made findable what it took in: told by events, else asked for."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from kb.client.http_client import ServerClient
from kb.client.notebook import job as job_of
from kb.client.problems import ServerError
from kb.knowledge.notebook import JobReport
from kb.model.decoding import decode_json
from kb.model.ids import DocId, JobId
from kb.model.standing import STANDINGS_MAX, Standing, StandingsRequest

# An open stream gives a sign of life more often than that, and has its end before that.
_SILENCE_S: Final = 40.0
_STREAMS_S: Final = 86_400.0
_POLL_S: Final = 0.5
_STILL_S: Final = 600.0
_LINE_BYTES_MAX: Final = 1 << 20
_OVER: Final = ("done", "failed")


class _DocEvent(Struct, frozen=True, kw_only=True):
    doc_id: DocId
    state: str


def docs_done(
    client: ServerClient, doc_ids: Sequence[DocId], on_left: Callable[[int], None] | None = None
) -> list[Standing]:
    """How the docs stand once there is nothing more to wait for; `on_left` hears how many wait.

    What has not moved for ten minutes is given back as it stands. Raises ServerError.
    """
    standings: list[Standing] = []
    for first in range(0, len(doc_ids), STANDINGS_MAX):
        group = tuple(doc_ids[first : first + STANDINGS_MAX])
        later = len(doc_ids) - first - len(group)

        def tell(waiting: int, later: int = later) -> None:
            if on_left:
                on_left(later + waiting)

        tell(len(group))
        _told(client, group, tell)
        standings += _asked(client, group, tell)
    return standings


def _told(client: ServerClient, group: tuple[DocId, ...], tell: Callable[[int], None]) -> None:
    """Be told by events, as long as there are any: where none come through, asking will do."""
    waiting = set(group)
    with contextlib.suppress(ServerError, ValueError):
        for name, data in events(client, [("doc", ident) for ident in group]):
            if name == "doc":
                event = decode_json(data, _DocEvent)
                if event.state != "pending":
                    waiting.discard(event.doc_id)
                    tell(len(waiting))


def _asked(
    client: ServerClient, group: tuple[DocId, ...], tell: Callable[[int], None]
) -> list[Standing]:
    before: list[Standing] = []
    moved_s = time.monotonic()
    while True:
        now = client.post("/v1/standings", StandingsRequest(doc_ids=group), list[Standing])
        waiting = sum(standing.state == "pending" for standing in now)
        tell(waiting)
        if now != before:
            before, moved_s = now, time.monotonic()
        if not waiting or time.monotonic() - moved_s > _STILL_S:
            return now
        time.sleep(_POLL_S)


def job_done(client: ServerClient, job: JobId) -> JobReport:
    """How a job stands once it is over, or after ten minutes. Raises ServerError, NotOnServer."""
    with contextlib.suppress(ServerError):
        for _ in events(client, [("job", job)]):
            pass
    began_s = time.monotonic()
    while True:
        job_status = job_of(client, job)
        if job_status.status in _OVER or time.monotonic() - began_s > _STILL_S:
            return job_status
        time.sleep(_POLL_S)


def events(client: ServerClient, query: Sequence[tuple[str, str]]) -> Iterator[tuple[str, bytes]]:
    """Events with their data, up to the last one or the end of the stream.

    Raises ServerError, also where nothing comes for longer than a stream is silent.
    """
    name = ""
    with client.opened(
        "GET", "/v1/events", query=tuple(query), total_s=_STREAMS_S, silence_s=_SILENCE_S
    ) as response:
        while line := response.readline(_LINE_BYTES_MAX):
            field, _, value = line.rstrip(b"\r\n").partition(b": ")
            if field == b"event":
                name = value.decode("utf-8", "replace")
            elif field == b"data":
                if name == "done":
                    return
                yield name, value
