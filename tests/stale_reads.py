"""Reads right after acknowledged writes: which of them had not seen the write?"""

import time
from collections import Counter
from collections.abc import Callable, Mapping

from http_server import Got, Running

WAIT_S = 60.0
Check = Callable[[Got], bool]


class StaleReads:
    """Writes to one server, and reads each write from another."""

    def __init__(self, writer: Running, reader: Running, *, with_token: bool, name: str) -> None:
        """Docs are called after `name`; `with_token` each read shows its write's token."""
        self._writer = writer
        self._reader = reader
        self._with_token = with_token
        self._name = name
        self.reads = 0
        self.stale: Counter[str] = Counter()
        """By what was read."""
        self.refused: Counter[int] = Counter()
        """By status: a server that is too far behind says so, and answers nothing."""

    def round(self, number: int) -> None:
        """One doc comes, is found, and goes: six reads, each of which may be stale."""
        word = f"{self._name}{number}"
        text = {"text": f"# {word}\n\nAbout {word} and nothing else.", "title": word}
        added = self._writer.post("/v1/docs", text)
        assert added.status == 200, added.body
        ident = added.json["doc_id"]
        # The doc itself is there with the answer; its passages are when the work is done.
        self._read("doc", added, f"/v1/docs/{ident}", lambda got: got.status == 200)
        self._read("list", added, "/v1/docs?limit=20", lambda got: ident in _ids(got, "docs"))
        done = self._worked_off(ident)
        search = f"/v1/search?q={word}&mode=lexical"
        self._read("search", done, search, lambda got: ident in _ids(got, "hits"))
        gone = self._writer.ask("POST", f"/v1/docs/{ident}/remove")
        assert gone.status == 200, gone.body
        self._read("removed doc", gone, f"/v1/docs/{ident}", lambda got: got.status == 404)
        self._read(
            "removed list", gone, "/v1/docs?limit=20", lambda got: ident not in _ids(got, "docs")
        )
        self._read("removed search", gone, search, lambda got: ident not in _ids(got, "hits"))

    def _worked_off(self, ident: str) -> Got:
        deadline = time.monotonic() + WAIT_S
        while True:
            got = self._writer.post("/v1/standings", {"doc_ids": [ident]})
            if got.json[0]["state"] == "done":
                return got
            assert time.monotonic() < deadline, got.json
            time.sleep(0.02)

    def _read(self, what: str, after: Got, path: str, is_current: Check) -> None:
        token = after.headers["kb-transaction"]
        headers = {"kb_at_least": token} if self._with_token else {}
        got = self._reader.get(path, **headers)
        self.reads += 1
        if got.status in (200, 404):
            self.stale[what] += not is_current(got)
        else:
            self.refused[got.status] += 1


def _ids(got: Got, name: str) -> set[str]:
    if got.status != 200:
        return set()
    rows: list[Mapping[str, str]] = got.json[name]
    return {row["doc_id"] for row in rows}
