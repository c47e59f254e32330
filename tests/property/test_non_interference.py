"""What a caller may not see changes no byte of what that caller reads, whatever is read."""
# Long because every tool is asked here, and each has its calls in one table.

import functools
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from homes import SmallHome
from packs_folder import doc as pack_doc
from packs_folder import pack_of
from postgres_server import PostgresServer

from kb.errors import KbError
from kb.home.open_home import OpenHome
from kb.home.spaces.spaces import Spaces
from kb.intake.ingest.changes import set_visibility, tombstone
from kb.intake.ingest.request import IngestOptions
from kb.knowledge.packs.register import register, unregister
from kb.model.config import SearchSettings
from kb.model.doc import OPERATOR, Doc, Scope, Visibility
from kb.model.ids import DocId, Lsid, doc_id
from kb.model.search import SearchMode, SearchRequest
from kb.operations.table import TOOLS, call
from kb.search.backends import DenseBackend, SearchBackends
from kb.search.engine import Searcher
from kb.search.entities import list_entities
from kb.search.index.dense import DenseIndex
from kb.search.index.lexical_indexes import LexicalIndexes
from kb.store import chunks, docs
from kb.store.content.database import DatabaseAddress, database_address
from kb.store.store import Store
from kb.store.stored_content import StoredContent

NOBODY, BOB, ALICE = Scope(user=None), Scope(user="bob"), Scope(user="alice")
MODES: tuple[SearchMode, ...] = ("hybrid", "lexical", "dense")
Shown = tuple[Visibility, str]
SHOWN: tuple[Shown, ...] = (
    ("public", "alice"),
    ("public", "bob"),
    ("shared", "carol"),
    ("shared", "bob"),
    ("private", "bob"),
    ("private", "alice"),
    ("private", "carol"),
)
TOPICS = (
    "green tea from the hills of #Uji, says @Ann",
    "black tea and milk, see https://tea.example.org/black",
    "the kettle boils for the green tea of @ann",
    "coffee beans, roasted dark; write to mill@coffee.example",
    "伊利 makes milk and yoghurt #奶",
    "meeting notes about the garden project of #uji",
)
QUERIES: tuple[dict[str, Any], ...] = (
    {"query": "green tea kettle"},
    {"query": '"green tea" #uji @ann'},
    {"query": "milk 伊利 奶"},
    {"query": "secretword tea"},
    {"query": "tea", "tags": ("drink",)},
    {"query": "tea", "kinds": ("file",)},
    {"query": "tea notes", "require_entities": ("#uji",)},
    {"query": "tea notes", "boost_entities": ("@ann", "#hush")},
    {"query": "green tea kettle project", "max_tokens": 60},
    {"query": "garden of tea", "explain": True},
    {"query": "tea -tag:hush -source:carol -title:coffee -kind:note", "explain": True},
)
# The long campaign; `make test-access`.
SEEDS = (1, 2, 3, 4)
SHARES = 5
"""A history reads all in so many steps, and at its end; the campaign reads all after each step."""
PACKS = ("manual", "hush", "pkg:packs")
PREFIXES = ("", "#", "#U", "@a", "http", "hush", "https://tea")
Said = tuple[str, bytes]
"""Who was asked, the library or a tool, and what the answer was."""


class Home(SmallHome):
    """A home that is asked by anybody. Few candidates, so that one too many shows."""

    def __init__(self, root: Path, seed: int, address: DatabaseAddress | None = None) -> None:
        super().__init__(root, address)
        self.random = random.Random(seed)
        self.names = 0
        self.reading = self.store
        """What is read by; another connection where that is a role's."""
        self.open_caches()

    @property
    def kit(self) -> Spaces:
        """The home as tools ask it."""
        content = StoredContent(self.reading, self.paths) if self.reading.home else self.content
        home = OpenHome(
            store=self.reading,
            content=content,
            searcher=lambda: self.searcher,
            caller=self.reading.caller,
        )
        return Spaces([home])

    def read_as_role(self, address: DatabaseAddress) -> Scope:
        """Read as the role of an address from now on; who that is."""
        self.reading = Store.open_database(address, self.clock, create=False)
        self.open_caches()
        return self.kit.caller

    def close(self) -> None:
        super().close()
        self.reading.close()

    def open_caches(self, *, anew: bool = False) -> None:
        self.lexical.close()
        self.dense.close()
        if anew:
            shutil.rmtree(self.paths.index)
            self.paths.make()
        self.lexical = LexicalIndexes(self.paths.index / "lexical")
        model = self.embedder
        folder = self.paths.index / "dense"
        self.dense = DenseIndex(folder, model.fingerprint, model.dim, mode="hnsw")
        self.searcher = Searcher(
            self.reading,
            self.content,
            SearchBackends(
                lexical=lambda: self.lexical,
                dense=lambda _: DenseBackend(embedder=self.embedder, index=self.dense),
            ),
            SearchSettings(candidates=6),
            5.0,
        )

    def give(self, shown: Shown, text: str, name: str = "") -> Doc:
        """Take a doc in; its jobs wait."""
        self.names += 1
        visibility, owner = shown
        ingest_options = IngestOptions(visibility=visibility, owner=owner, tags=("drink",))
        request = self.request(name or f"{visibility}-{owner}-{self.names}.md", text)
        found = self.doc(
            self.commit(
                self.ingestor.stage(msgspec.structs.replace(request, ingest_options=ingest_options))
            )
        )
        assert found is not None
        return found

    def give_pack(self, shown: Shown, pack_id: str) -> None:
        """Register a pack of one doc; all packs give themselves the same selector."""
        folder = self.root.with_name(f"{self.root.name}-{pack_id}")
        pack = pack_of(folder, pack_doc("tea"), pack_id=pack_id, selector="pkg:packs")
        visibility, owner = shown
        register(self.store, pack, visibility=visibility, owner=owner)

    def text(self) -> str:
        """A note of one to three topics; the words of the queries are in all of them."""
        count = self.random.randint(1, 3)
        parts = self.random.sample(TOPICS, count)
        return f"# {parts[0][:20]}\n\n" + "\n\n".join(f"## Part\n\n{part}." for part in parts)


def lies_before(shown: Shown, scope: Scope) -> bool:
    """Whether docs like that are visible to a scope."""
    visibility, owner = shown
    return visibility == "public" or (
        scope.user is not None and (visibility == "shared" or owner == scope.user)
    )


def name_like(ident: str) -> str:
    """A file name whose doc's id begins as another's does."""
    return next(
        name
        for name in (f"like-{number}.md" for number in range(10**6))
        if doc_id(Lsid(f"file:///notes/{name}"), 1)[:4] == ident[:4]
    )


def tool_calls(idents: Sequence[str], own: str) -> dict[str, list[dict[str, Any]]]:
    """The arguments that each tool is called with: every id, every limit, every bound."""
    return {
        "kb_search": [
            *(said for said in QUERIES if "max_tokens" not in said),
            {"query": "green tea kettle project", "max_tokens": 60},
            {"query": "tea", "mode": "dense", "limit": 100},
            {"query": "tea", "mode": "lexical", "max_tokens": 1},
            *({"query": "tea", "doc_ids": [ident]} for ident in idents),
        ],
        "kb_ask": [
            {"question": "green tea kettle"},
            {"question": "secretword tea", "with_text": True, "max_tokens": 60},
            {"question": "milk 伊利 奶", "limit": 1, "tags": ["drink"], "kinds": ["file"]},
            *({"question": "tea", "doc_ids": [ident]} for ident in idents),
            *({"question": "tea", "packs": [pack]} for pack in PACKS),
        ],
        "kb_fetch": [
            *({"id": ident} for ident in idents),
            *({"id": ident, "max_tokens": 5} for ident in idents),
            {"id": own, "start": 3, "end": 20},
            {"id": own, "page": 1},
            *({"id": place} for place in ("own.md", "/notes/secret.md", "hush", "no-such.md")),
        ],
        "kb_list_docs": [
            {},
            {"limit": 2},
            {"max_tokens": 1},
            {"tags": ["drink"]},
            {"tags": ["hush"]},
            {"kinds": ["file"], "limit": 5},
            {"kinds": ["url"]},
        ],
        "kb_similar": [
            *({"id": ident, "limit": 5} for ident in idents),
            {"id": own, "limit": 100, "max_tokens": 60},
        ],
        "kb_search_entities": [
            *({"prefix": prefix} for prefix in PREFIXES),
            {"limit": 1},
            {"max_tokens": 1},
        ],
        "kb_pack_list": [{}, *({"pack": pack} for pack in PACKS)],
        "kb_pack_read": [{"pack": pack, "doc": "tea"} for pack in PACKS],
        "kb_pack_search": [{"pack": pack, "query": "tea"} for pack in PACKS],
        "kb_pack_neighbors": [{"pack": pack, "doc": "tea"} for pack in PACKS],
    }


class Reader:
    """All that a scope can read of a home, as bytes."""

    def __init__(self, home: Home, scope: Scope, own: list[Doc], strangers: list[str]) -> None:
        self._home = home
        self._scope = scope
        self._doc_ids = tuple(doc.doc_id for doc in own)
        chosen = self._doc_ids[0]
        with home.store.read() as txn:
            passage = chunks.of_source(txn, own[0].source_no)[0].chunk_id
        self._idents = (chosen, chosen[:5], chosen[:4], "d", "c", "dffff", passage, *strangers)
        self._calls = tool_calls(self._idents, chosen)

    def read(self, share: slice = slice(None)) -> list[Said]:
        """Every answer and every refusal, or a share of them: the library's, then every tool's."""
        return [(who, ask()) for who, ask in self._asks()[share]]

    def _asks(self) -> list[tuple[str, Callable[[], bytes]]]:
        return [
            *(("library", ask) for ask in self._library()),
            *(
                (tool.name, functools.partial(self._pages, tool.name, arguments))
                for tool in TOOLS
                for arguments in self._calls[tool.name]
            ),
        ]

    def _pages(self, name: str, arguments: dict[str, Any]) -> bytes:
        """What a tool says, and what it says on the pages after."""
        pages = [call(name, arguments, self._home.kit, self._scope)]
        while cursor := msgspec.json.decode(pages[-1]).get("next_cursor"):
            pages.append(call(name, arguments | {"cursor": cursor}, self._home.kit, self._scope))
        return b"\n".join(pages)

    def _library(self) -> list[Callable[[], bytes]]:
        requests = [
            SearchRequest(**said, mode=mode, k=k)
            for said in (*QUERIES, {"query": "tea", "doc_ids": self._doc_ids[:3]})
            for mode in MODES
            for k in (2, 60)
        ]
        return [
            *(functools.partial(self._search, request) for request in requests),
            *(functools.partial(self._similar, ident) for ident in self._idents),
            *(functools.partial(self._resolve, ident) for ident in self._idents),
            *(functools.partial(self._entities, prefix) for prefix in PREFIXES),
        ]

    def _search(self, request: SearchRequest) -> bytes:
        return said(lambda: self._home.searcher.search(request, self._scope))

    def _similar(self, ident: str) -> bytes:
        return said(lambda: self._home.searcher.similar(ident, 5, self._scope))

    def _resolve(self, ident: str) -> bytes:
        with self._home.reading.read() as txn:
            return said(lambda: docs.resolve(txn, ident, self._scope))

    def _entities(self, prefix: str) -> bytes:
        with self._home.reading.read() as txn:
            return msgspec.json.encode(list_entities(txn, prefix, self._scope, 50))


def said(ask: Callable[[], object]) -> bytes:
    """The answer, or the error with its text."""
    try:
        return msgspec.json.encode(ask())
    except KbError as error:
        return f"{type(error).__name__} {error}".encode()


class Stranger:
    """Does what anybody does, to docs of the given kinds alone."""

    def __init__(self, home: Home, kinds: list[Shown], reserved: list[str]) -> None:
        self._home = home
        self._random = home.random
        self._kinds = kinds
        self._reserved = reserved
        self._docs: list[DocId] = []

    def steps(self, turns: int = 2) -> Iterator[str]:
        """One change after the other, each named; the caller looks in between.

        The second turn purges what it compacts, and makes the caches anew.
        """
        home, any_of = self._home, self._random.choice
        for turn in range(turns):
            for _ in range(12):
                self._add(home.text())
            if turn:
                unregister(home.store, "hush")
            else:
                home.give_pack(any_of(self._kinds), "hush")
            yield "added, jobs waiting"
            home.work("chunk")
            yield "cut, not embedded"
            home.work()
            yield "worked off"
            home.searcher.search(SearchRequest(query="green tea"), OPERATOR)
            home.searcher.search(SearchRequest(query="green tea"), ALICE)
            yield "searched by others"
            for doc in self._some(5):
                name = doc.lsid.rpartition("/")[2]
                self._docs.append(
                    home.give(any_of(self._kinds), home.text() + "\n\nmore", name).doc_id
                )
            yield "changed, the jobs waiting"
            home.work()
            yield "changed"
            for doc in self._some(3):
                self._show(doc)
            yield "shown to other strangers"
            tombstone(home.store, [doc.doc_id for doc in self._some(4)])
            yield "tombstoned"
            home.wait_min(2)
            home.compact(grace_min=0, tombstone_days=0 if turn else 30)
            yield "compacted"
            home.open_caches(anew=bool(turn))
            yield "opened again"

    def _add(self, text: str) -> None:
        name = self._reserved.pop() if self._reserved else ""
        body = self._random.choice(
            (text, f"{text}\n\nsecretword #hush #UJI @ANN", "green tea kettle")
        )
        self._docs.append(self._home.give(self._random.choice(self._kinds), body, name).doc_id)

    def _some(self, count: int) -> list[Doc]:
        """Of the docs that are still there."""
        found = [doc for ident in self._docs if (doc := self._home.doc(ident)) is not None]
        return self._random.sample(found, count)

    def _show(self, doc: Doc) -> None:
        for visibility in ("public", "shared", "private"):
            if (visibility, doc.owner) in self._kinds:
                set_visibility(self._home.store, doc.doc_id, visibility)


@pytest.fixture
def open_home(tmp_path: Path) -> Iterator[Callable[[int], Home]]:
    homes: list[Home] = []

    def make(seed: int, address: DatabaseAddress | None = None) -> Home:
        homes.append(Home(tmp_path / f"home-{seed}", seed, address))
        return homes[-1]

    yield make
    for home in homes:
        home.close()


def settled(home: Home, scope: Scope) -> tuple[Reader, list[str]]:
    """Docs of every kind, worked off; a reader of what a scope sees; names that strangers take."""
    # Strangers first, so that theirs are the older surfaces and the smaller numbers.
    kinds = sorted(SHOWN, key=lambda shown: lies_before(shown, scope))
    given = [(shown, home.give(shown, home.text())) for shown in kinds for _ in range(3)]
    home.give_pack(("public", "alice"), "manual")
    home.work()
    own = [doc for shown, doc in given if lies_before(shown, scope)]
    reserved = [name_like(own[0].doc_id)]
    to_come = doc_id(Lsid(f"file:///notes/{reserved[0]}"), 1)
    hidden = next(doc.doc_id for shown, doc in given if not lies_before(shown, scope))
    home.dense.catch_up(home.store, wait_s=5)
    assert home.dense.build_hnsw(wait_s=5) is None
    return Reader(home, scope, own, [to_come, to_come[:6], hidden, hidden[:6]]), reserved


@pytest.mark.parametrize(
    ("scope", "seed", "turns"), [(NOBODY, 1, 1), (BOB, 2, 2)], ids=["nobody", "bob"]
)
def test_what_is_hidden_changes_no_byte(
    open_home: Callable[[int], Home], scope: Scope, seed: int, turns: int
) -> None:
    """Docs that match every query come, change, wait, move and go: every answer stays as it was."""
    check_nothing_changes(open_home(seed), scope, turns, SHARES)


def test_what_is_hidden_changes_no_byte_on_postgres(
    open_home: Callable[..., Home], postgres: PostgresServer
) -> None:
    """As in a folder, in a home in a database, which a user reads as the role of their name."""
    address = postgres.new_address()
    home = open_home(2, address)
    named = postgres.home_as("bob", address.shown, rights="read")
    assert home.read_as_role(database_address(named)) == BOB
    check_nothing_changes(home, BOB, 1, SHARES)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scope", [NOBODY, BOB, ALICE], ids=["nobody", "bob", "alice"])
@pytest.mark.parametrize("is_shared", [False, True], ids=["folder", "postgres"])
@pytest.mark.timeout(900)
def test_what_is_hidden_changes_no_byte_ever(
    open_home: Callable[..., Home],
    postgres: PostgresServer,
    scope: Scope,
    seed: int,
    is_shared: bool,
) -> None:
    """As above, of more histories and for everybody."""
    check_nothing_changes(open_home(seed, postgres.new_address() if is_shared else None), scope, 2)


def check_nothing_changes(home: Home, scope: Scope, turns: int, shares: int = 1) -> None:
    """Read everything at first; after each step another share of it, and everything at the end."""
    reader, reserved = settled(home, scope)
    parts = [slice(first, None, shares) for first in range(shares)]
    before = reader.read()
    library = [answer for who, answer in before if who == "library"]
    assert sum(b'"rank":1,' in answer for answer in library) > len(library) // 2
    hidden = [shown for shown in SHOWN if not lies_before(shown, scope)]
    for number, step in enumerate(Stranger(home, hidden, reserved).steps(turns)):
        part = parts[number % shares]
        assert differences(before[part], reader.read(part)) == [], step
    assert differences(before, reader.read()) == []


def differences(before: list[Said], after: list[Said]) -> list[tuple[Said, Said]]:
    return [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]


@pytest.mark.parametrize("scope", [NOBODY, BOB], ids=["nobody", "bob"])
def test_what_is_visible_does(open_home: Callable[[int], Home], scope: Scope) -> None:
    """The same changes to docs that the scope sees change most answers: the test can fail."""
    home = open_home(3)
    reader, reserved = settled(home, scope)
    before = reader.read()
    shown = [shown for shown in SHOWN if lies_before(shown, scope)]
    steps = Stranger(home, shown, reserved).steps()
    next(steps)
    assert reader.read() != before
    next(steps)
    next(steps)
    after = reader.read()
    changed = [who for (who, old), (_, new) in zip(before, after, strict=True) if old != new]
    asked = [who for who, _ in before]
    assert changed.count("library") > asked.count("library") * 3 // 4
    assert {tool.name for tool in TOOLS} <= set(changed)


@pytest.mark.parametrize("scope", [NOBODY, BOB], ids=["nobody", "bob"])
def test_hidden_is_answered_as_never_there(open_home: Callable[[int], Home], scope: Scope) -> None:
    """An id of what is hidden or removed gets the bytes that one gets which was never given."""
    home = open_home(4)
    settled(home, scope)
    with home.store.read() as txn:
        given = list(docs.all_latest(txn))
    own, removed, *_ = (doc for doc in given if doc.visible_to(scope))
    hidden = [doc for doc in given if not doc.visible_to(scope)][:2]
    tombstone(home.store, [removed.doc_id])
    idents: list[str] = [removed.doc_id]
    with home.store.read() as txn:
        for doc in hidden:
            passage = chunks.of_source(txn, doc.source_no)[0].chunk_id
            idents += [doc.doc_id, doc.doc_id[:8], passage, passage[:6]]
    home.give((hidden[0].visibility, hidden[0].owner), "# Tea\n\nanew", Path(hidden[0].source).name)
    nowhere = doc_id(Lsid("file:///nowhere"), 1)
    for ident in idents:
        never = ident[0] + nowhere[1 : len(ident)]
        found, expected = tool_calls([ident], own.doc_id), tool_calls([never], own.doc_id)
        for tool in TOOLS:
            for one, other in zip(found[tool.name], expected[tool.name], strict=True):
                answer = call(tool.name, one, home.kit, scope)
                unknown = call(tool.name, other, home.kit, scope)
                assert answer.replace(ident.encode(), never.encode()) == unknown
                if ident in one.values():
                    assert b'"not_found"' in unknown


def test_every_tool_is_read_through() -> None:
    """A tool that is added later must be asked here, too."""
    assert set(tool_calls(["d"], "d")) == {tool.name for tool in TOOLS}
