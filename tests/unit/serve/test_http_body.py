"""Bodies are received within bounds, and places go to those that come."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kb.model.config import ServeSettings
from kb.serve import http_body
from kb.serve.http_body import Bodies, check_length
from kb.serve.http_reply import BINARY, Refusal

PLACES = 4


def header(name: str) -> str:
    return {"content-type": BINARY}.get(name, "")


class Upload:
    """One upload, whose parts come when they are told to."""

    def __init__(self, bodies: Bodies) -> None:
        self._parts: asyncio.Queue[tuple[bytes, bool]] = asyncio.Queue()
        self._work = asyncio.Event()
        self.task = asyncio.create_task(self._received(bodies))

    async def _received(self, bodies: Bodies) -> bytes:
        async with bodies.file(header, self._receive) as file:
            found = file.read()
            file.close()
            await self._work.wait()
            return found

    async def _receive(self) -> dict[str, Any]:
        part, is_last = await self._parts.get()
        return {"type": "http.request", "body": part, "more_body": not is_last}

    async def send(self, part: bytes, *, is_last: bool = False) -> None:
        self._parts.put_nowait((part, is_last))
        await asyncio.sleep(0.01)

    async def status(self) -> int:
        """What came of it, worked on now: 200, or that of its refusal."""
        self._work.set()
        try:
            await asyncio.wait_for(self.task, 10)
        except Refusal as refusal:
            return refusal.status
        return 200


def told(folder: Path, story: Callable[[Bodies], Any]) -> None:
    asyncio.run(story(Bodies(ServeSettings(upload_bytes_max=1 << 20), folder)))


def test_who_sends_nothing_holds_no_place(tmp_path: Path) -> None:
    """However many have said that they will."""

    async def story(bodies: Bodies) -> None:
        silent = [Upload(bodies) for _ in range(PLACES * 4)]
        one = Upload(bodies)
        await one.send(b"whole", is_last=True)
        assert await one.status() == 200
        for upload in silent:
            upload.task.cancel()

    told(tmp_path, story)


@pytest.mark.parametrize("first", [b"a", b"a" * 4_096])
def test_a_body_that_stalls_gives_its_place_to_one_that_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bytes
) -> None:
    """It hears that it is too slow; those that are worked on keep theirs."""
    monkeypatch.setattr(http_body, "_GRACE_S", 0.0)
    monkeypatch.setattr(http_body, "_BYTES_S_MIN", 1 << 40)

    async def story(bodies: Bodies) -> None:
        worked_on = Upload(bodies)
        await worked_on.send(first, is_last=True)
        stalled = [Upload(bodies) for _ in range(PLACES - 1)]
        for upload in stalled:
            await upload.send(first)
        comes = [Upload(bodies) for _ in range(PLACES - 1)]
        for upload in comes:
            await upload.send(first, is_last=True)
        assert [await upload.status() for upload in comes] == [200] * len(comes)
        assert [await upload.status() for upload in stalled] == [408] * len(stalled)
        assert await worked_on.status() == 200

    told(tmp_path, story)


def test_those_that_come_are_not_driven_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where every place is in use, one more is told to come again."""
    monkeypatch.setattr(http_body, "_BYTES_S_MIN", 0)

    async def story(bodies: Bodies) -> None:
        coming = [Upload(bodies) for _ in range(PLACES)]
        for upload in coming:
            await upload.send(b"some")
        late = Upload(bodies)
        await late.send(b"whole", is_last=True)
        assert await late.status() == 503
        for upload in coming:
            await upload.send(b"more", is_last=True)
        assert [await upload.status() for upload in coming] == [200] * PLACES

    told(tmp_path, story)


@pytest.mark.parametrize(
    ("said", "is_refused"),
    [("", False), ("10", False), ("11", True), ("9" * 30, True), ("x", False)],
)
def test_a_length_over_the_bound_is_refused(said: str, is_refused: bool) -> None:
    """Before anything is read."""
    with pytest.raises(Refusal) if is_refused else contextlib.nullcontext():
        check_length(lambda _: said, 10)
