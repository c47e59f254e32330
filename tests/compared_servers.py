"""In-process servers of one home with and without hidden docs, called without a socket."""

import asyncio
import contextlib
import io
import json
import logging
import os
import re
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any, Final

from fakes import FakeClock
from msgspec import Struct
from packs_folder import doc as pack_doc
from packs_folder import pack_of

from kb.home.app import App
from kb.home.spaces.homes import SpaceHome
from kb.home.spaces.spaces import Spaces
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.add import AddOptions
from kb.intake.sync.sync_all import SyncOptions
from kb.knowledge.packs.register import register
from kb.model.config import ServeSettings, load
from kb.model.doc import VISIBILITIES, Scope, Visibility
from kb.model.token import Role
from kb.serve.access_log import AccessLog
from kb.serve.executor import CallExecutor, CallExecutors
from kb.serve.http_changes import Changes
from kb.serve.http_gate import Gate, GateOptions
from kb.serve.http_metrics import Metrics
from kb.serve.http_routes import Served
from kb.serve.http_server import all_routes
from kb.serve.http_streams import Streams
from kb.serve.sessions import Sessions
from kb.store import chunks, docs, tokens
from kb.store.records import NOTES

EVE: Final = "eve"
_SHOWN: Final[tuple[tuple[Visibility, str], ...]] = (
    ("public", "local"),
    ("public", "mallory"),
    ("shared", "local"),
    ("private", EVE),
)
_HIDDEN: Final[tuple[tuple[Visibility, str], ...]] = (("private", "local"), ("private", "mallory"))
# Random, or of all that the notebook's branch holds: these tell nobody of anything.
# Ids, and when the notebook has written its files.
_RANDOM: Final = re.compile(
    rb"transaction\W+[\w-]{32}|\bj[0-9a-f]{22}\b|"
    rb"\b[0-9a-f]{40}\b|\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d"
)
_WORDS: Final = "harbour of #boats, says @ann; see https://boats.example.org"
_ENTRY: Final = (
    "---\nzettel_id: {0}\ntitle: {0}\nuse_when: [how do I moor a boat]\n---\nMoor {0}.\n"
)
_TOPIC: Final = '[kb.topic.{0}]\ntitle = "The {0}"\nsubjects = "{1}/{0}"\nvisibility = "{2}"\n'


class Answer(Struct, frozen=True, kw_only=True):
    """All of what came back."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Hidden(Struct, frozen=True, kw_only=True):
    """What somebody knows, or guesses, of what is hidden."""

    docs: tuple[str, ...]
    passages: tuple[str, ...]
    jobs: tuple[str, ...]


class ServerVariant:
    """A folder in which the same home is made with what is to be hidden, and without."""

    def __init__(self, root: Path, *, secret: bool) -> None:
        self.root = root
        self.home = root / "home"
        self.clock = FakeClock()
        self._sources(secret=secret)
        self.settings = load([self.home / "kb.toml"], ["embed.kind=hashing", "work.idle_ms=10"])
        with App.open(self.home, self.settings, clock=self.clock) as app:
            if secret:
                self._hide(app)
            self._show(app)
            self.work(app)
            draws: dict[Role, bytes] = {"reader": b"r", "writer": b"w", "admin": b"a"}
            self.tokens = {
                role: tokens.add(app.store, role, EVE, role, lambda n, d=drawn: d * n)
                for role, drawn in draws.items()
            }

    def _sources(self, *, secret: bool) -> None:
        """Files of both homes lie there in both: it is what is taken in that differs."""
        said = []
        for kind, owner in (*_SHOWN, *_HIDDEN):
            for n in range(3):
                text = f"# {owner}'s {kind} {n}\n\nThe {kind} {_WORDS} #{owner}\n"
                self._write(f"{kind}-{owner}/{n}.md", text)
        for kind in VISIBILITIES:
            self._write(f"ways/{kind}/first.md", f"What is {kind}.\n")
            self._write(f"ways/{kind}/known.md", f"Known of {kind}.\n")
            if secret or kind != "private":
                said.append(_TOPIC.format(kind, self.root / "ways", kind))
                said.append('learned = ["known"]\n')
        if secret:
            # Its folder is not there: the operator's trouble, and nobody else's.
            said.append(_TOPIC.format("gone", self.root / "none", "private"))
        self._write("home/kb.toml", "".join(said))
        if secret:
            self._write("home/knowledge/secret-mooring.md", _ENTRY.format("secret-mooring"))

    def _write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_700_000_000, 1_700_000_000))

    def _hide(self, app: App) -> None:
        for kind, owner in _HIDDEN:
            self._add(app, kind, owner)
        pack = pack_of(self.root / "hush", pack_doc("tea", summary="Secret."), pack_id="hush")
        register(app.store, pack, visibility="private", owner="local")
        app.notebook.hand_in(b"# Secret\n\nThe secret harbour.\n", None, ("hush",))
        app.notebook.hand_in(b"# Mine\n\nMallory's harbour.\n", None, (), owner="mallory")

    def _show(self, app: App) -> None:
        for kind, owner in _SHOWN:
            self._add(app, kind, owner)
        pack = pack_of(self.root / "manual", pack_doc("tea", summary="Shown."), pack_id="manual")
        register(app.store, pack, visibility="public", owner="local")
        app.notebook.hand_in(b"# Own\n\nEve's own harbour.\n", None, ("own",), owner=EVE)
        with app.parser() as parser:
            app.syncer(parser, SyncOptions(home=self.home)).run()

    def _add(self, app: App, kind: Visibility, owner: str) -> None:
        ingest_options = IngestOptions(visibility=kind, owner=owner, tags=(f"{kind}-{owner}",))
        paths = [str(path) for path in sorted((self.root / f"{kind}-{owner}").iterdir())]
        with app.parser() as parser:
            app.adder(parser, AddOptions(ingest_options=ingest_options)).add(paths)

    def work(self, app: App) -> None:
        """Do all that is to do."""
        pool = app.pool()
        pool.start()
        pool.drain()
        assert pool.shutdown()

    def hidden(self, scope: Scope) -> Hidden:
        """Ids of what a scope does not see here."""
        with App.open(self.home, self.settings, clock=self.clock) as app, app.store.read() as txn:
            unseen = [doc for doc in docs.all_latest(txn) if not doc.visible_to(scope)]
            found = [chunks.of_source(txn, doc.source_no) for doc in unseen]
            jobs = [note.job_id for _, note in NOTES.scan(txn) if note.owner != scope.user]
        passages = [one.chunk_id for many in found for one in many]
        return Hidden(
            docs=tuple(doc.doc_id for doc in unseen), passages=tuple(passages), jobs=tuple(jobs)
        )

    @contextlib.contextmanager
    def serving(self) -> Iterator["Asked"]:
        """A gate to the home, which is opened for the length of the block."""
        here = SpaceHome(name="home", home=self.home)
        with (
            Spaces.open([here], lambda _: self.settings, clock=self.clock, leads=True) as spaces,
            asyncio.Runner() as loop,
        ):
            yield Asked(self, spaces, loop)
        # As tests find it that come after, in this process.
        logging.getLogger("mcp").propagate = True


class Asked:
    """Asks a gate, and keeps what came back."""

    def __init__(self, twice: ServerVariant, spaces: Spaces, loop: asyncio.Runner) -> None:
        self._loop = loop
        self.app = spaces.first
        self.twice = twice
        metrics = Metrics()
        self._lines = AccessLog(io.StringIO(), "text", twice.clock)
        self.served = Served(
            app=self.app,
            spaces=spaces,
            every=spaces,
            changes=Changes(self.app.store),
            trouble=lambda: None,
            sessions=Sessions(bytes),
            counters=metrics.lines,
        )
        said = ServeSettings(stream_s=0.5)
        options = GateOptions(settings=said, host="127.0.0.1", is_loopback=True, draw=bytes)
        executors = CallExecutors(short=CallExecutor(1, 8), long=CallExecutor(1, 8))
        streams = Streams(8, metrics)
        self._gate = Gate(
            all_routes(), self.served, options, metrics, executors, self._lines, streams
        )

    def ask(
        self, role: Role, method: str, address: str, body: bytes = b"", media: str = ""
    ) -> Answer:
        """One request with the token of a role."""
        return self._loop.run(self._ask(role, method, address, body, media))

    async def _ask(self, role: Role, method: str, address: str, body: bytes, media: str) -> Answer:
        path, _, query = address.partition("?")
        headers = {
            "host": "localhost",
            "authorization": f"Bearer {self.twice.tokens[role]}",
            "content-type": media or "application/json",
            "accept": "application/json, text/event-stream",
        }
        scope = {
            "method": method,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        coming = iter([{"type": "http.request", "body": body, "more_body": False}])
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> Any:
            part = next(coming, None)
            if part is None:
                await asyncio.Event().wait()
            return part

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        await self._gate(scope, receive, send)
        begin, *parts = sent
        content = b"".join(part.get("body", b"") for part in parts)
        headers = tuple(
            (name, b"" if name in (b"etag", b"kb-transaction") else value)
            for name, value in begin["headers"]
        )
        return Answer(
            status=begin["status"], headers=headers, body=_RANDOM.sub(b"(random)", content)
        )
