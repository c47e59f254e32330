"""Two homes that differ in what is hidden answer alike, by every route, tool, resource and prompt.

What is asked comes from the tables in which it is registered: whatever is added there is asked
here, or the test says that it is not.
"""

import json
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from compared_servers import EVE, Answer, Asked, Hidden, ServerVariant

from kb.model.doc import Scope
from kb.model.token import Role
from kb.operations.table import HELP, LEARN, OPERATIONS, TOOLS
from kb.serve.executor import InlineExecutor
from kb.serve.http_server import all_routes
from kb.serve.mcp import make_server
from kb.serve.writing import writers
from kb.store.jobs import queue

ROLES: Final[tuple[Role, ...]] = ("reader", "writer")
SAID: Final = "harbour of boats"
Call = tuple[str, str, bytes, str]
"""Method, address, body and its type."""
Told = dict[tuple[Role, Call], Answer]


class Known:
    """What is asked for: what eve sees, and what she was told of or guesses."""

    def __init__(self, asked: Asked, hidden: Hidden) -> None:
        self.hidden = hidden
        rows = asked.ask("reader", "GET", "/v1/docs?limit=100").json["docs"]
        hits = asked.ask("reader", "GET", "/v1/search?q=harbour&k=5").json["hits"]
        self.own = [row["doc_id"] for row in rows]
        self.docs = [
            *self.own[:2],
            *hidden.docs,
            *(one[:6] for one in hidden.docs[::3]),
            "secret-mooring",
        ]
        self.passages = [hits[0]["chunk_id"], *hidden.passages]
        self.packs = ["manual", "hush", "none"]
        self.topics = ["public", "shared", "private", "gone", "The private", "none"]


def arguments_of(tool: str, known: Known) -> list[dict[str, Any]]:
    """What a tool is called with."""
    idents = [*known.docs, *known.passages]
    pairs = [{"pack": pack, "doc": "tea"} for pack in known.packs]
    table: dict[str, list[dict[str, Any]]] = {
        "kb_search": [
            {"query": SAID, "limit": 50},
            {"query": "secret mallory private", "explain": True},
            *({"query": "harbour", "doc_ids": [one]} for one in known.docs),
            *({"query": "tea", "packs": [one]} for one in known.packs),
            {"query": "harbour", "tags": ["private-local"]},
            {"query": "harbour", "require_entities": ["#mallory"]},
        ],
        "kb_ask": [{"question": "What is in the secret harbour?", "with_text": True}],
        "kb_fetch": [
            {"id": one} for one in (*idents, "secret.md", "own.md", "mallory/mine.md", "secrte.md")
        ],
        "kb_list_docs": [{}, {"limit": 2}, {"kinds": ["topic"]}, {"kinds": ["notebook"]}],
        "kb_similar": [{"id": one} for one in idents],
        "kb_search_entities": [{"prefix": ""}, {"prefix": "#m"}],
        "kb_pack_list": [{}, *({"pack": one} for one in known.packs)],
        "kb_pack_read": pairs,
        "kb_pack_search": [{"pack": one, "query": "tea"} for one in known.packs],
        "kb_pack_neighbors": pairs,
        "learn": [
            *({"topic": one} for one in known.topics),
            *({"topic": one, "subjects": "**"} for one in known.topics),
            *({"topic": one, "subjects": ["first", "known"]} for one in known.topics),
        ],
        "help": [
            {"action": "guidance", "query": "how do I moor a boat"},
            *({"action": "guidance", "topic": one} for one in known.topics),
            {"action": "stuck", "reason": "The tide."},
        ],
        "kb_add": [{"text": "Eve's rope.", "title": "0"}, {"text": "Eve's rope."}],
        "note_add": [{"text": "Eve's knot.", "hint": "secret"}],
    }
    return table[tool]


def messages(asked: Asked, known: Known) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is sent to /mcp: every method that a server of ours takes."""
    app = asked.app
    server = make_server(asked.served.spaces, Scope(user=EVE), InlineExecutor(), writers(app))
    uris = [
        *(f"kb://doc/{one}" for one in known.docs),
        *(f"kb://topic/{one}/{slug}" for one in known.topics for slug in ("first", "known", "x")),
    ]
    tools = [tool.name for tool in (*TOOLS, LEARN, HELP, *writers(app))]
    table: dict[str, list[dict[str, Any]]] = {
        "ping": [{}],
        "server/discover": [{}],
        "initialize": [
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "eve", "version": "1"},
            }
        ],
        "tools/list": [{}],
        "tools/call": [
            {"name": name, "arguments": said}
            for name in tools
            for said in arguments_of(name, known)
        ],
        "resources/list": [{}, {"cursor": "kb://topic/"}, {"cursor": "kb://topic/private/a"}],
        "resources/templates/list": [{}],
        "resources/read": [{"uri": uri} for uri in uris],
        "prompts/list": [{}],
        "prompts/get": [{"name": "knowledge"}, {"name": "none"}],
    }
    # The protocol's own table of who answers what; it has no public name.
    methods = {*vars(server)["_request_handlers"], "initialize"}
    assert set(table) == methods
    for method in sorted(methods):
        for params in table[method]:
            yield method, params


def queries_of(asked: Asked, known: Known) -> dict[str, list[str]]:
    """For routes that are read what stands behind their paths."""
    quoted = urllib.parse.quote
    tags = ("private-local", "private-eve", "public-local")
    return {
        "/content": [
            "?path=from-eve/own.md",
            *(
                f"?path={quoted(path)}"
                for path in ("secret.md", "INDEX.md", "from-mallory/mine.md")
            ),
            "?query=What+is+in+the+secret+harbour%3F",
            "?query=secret&mode=raw",
        ],
        "/v1/search": [
            "?q=secret+harbour&k=50",
            "?q=harbour&marks=true&k=50",
            *(f"?q=harbour&tag={tag}" for tag in tags),
            *(f"?q=harbour&doc={one}" for one in known.docs),
            *(f"?q=tea&pack={one}" for one in known.packs),
            f"?q=harbour&source={quoted(str(asked.twice.root))}",
        ],
        "/v1/docs": ["", "?limit=1", *(f"?tag={tag}" for tag in tags), "?kind=topic"],
        "/v1/entities": ["?prefix=", "?prefix=%23mal"],
        "/v1/packs": ["", *(f"?pack={one}" for one in known.packs)],
        "/v1/facets": ["", "?limit=1"],
        "/v1/growth": ["", "?by=date", *(f"?tag={tag}" for tag in tags)],
        "/v1/guide": ["?q=how+do+I+moor+a+boat"],
        "/v1/notes": ["", "?tag=hush", "?tag=own"],
        "/v1/notes/log": ["", "?limit=10"],
        "/v1/events": [
            *(f"?doc={one}" for one in known.docs),
            *(f"?job={one}" for one in known.hidden.jobs),
            "",
        ],
    }


def idents_of(known: Known) -> dict[str, list[str]]:
    """For routes of one thing the ids that are asked for."""
    return {
        "/v1/docs/{id}": [*known.docs, *known.passages],
        "/v1/passages/{id}": [*known.docs, *known.passages],
        "/v1/similar/{id}": [*known.docs, *known.passages],
        "/jobs/{id}": list(known.hidden.jobs),
        "/v1/jobs/{id}": list(known.hidden.jobs),
        "/v1/docs/{id}/remove": list(known.hidden.docs),
        "/v1/jobs/{id}/retry": list(known.hidden.jobs),
        "/page/{name}": ["app.js"],
        "/open/{link}": ["0" * 64, "x"],
    }


def bodies_of(asked: Asked, known: Known) -> dict[str, list[Any]]:
    """For routes that take JSON what they are sent."""
    commands: dict[str, list[Any]] = {
        "search": [{"query": SAID}, {"query": SAID, "marks": True}],
        "ask": [_question()],
        "ask-sources": [_question()],
        "ls": [{}, {"status": "tombstoned"}, {"status": "superseded"}],
        "show": [{"id": one} for one in (*known.docs, *known.passages)],
        "standings": [{"doc_ids": known.hidden.docs}],
        "guide": [{"query": "how do I moor a boat"}],
        "facets": [{}],
        "growth": [{}, {"by": "date"}, *({"doc_ids": [one]} for one in known.hidden.docs)],
        "topics": [{}],
        **{
            operation.name: arguments_of(operation.tool.name, known)
            for operation in OPERATIONS
            if operation.tool is not None and operation.name not in ("search", "ask")
        },
    }
    return {
        **{f"/v1/{name}": asks for name, asks in commands.items()},
        **{
            f"/v1/tools/{tool.name}": arguments_of(tool.name, known)
            for tool in (*TOOLS, LEARN, HELP)
        },
        "/v1/links": [{}],
        "/mcp": [
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            for method, params in messages(asked, known)
        ],
        "/content": [{"content": "# Secret\n\nThe secret harbour.\n", "tags": ["hush"]}],
        "/v1/docs": [{"text": "Eve's.", "title": "local's private 0", "visibility": "private"}],
        "/v1/questions": [{"query": SAID, "id": one} for one in known.hidden.docs],
    }


def calls_of(asked: Asked, known: Known) -> Mapping[tuple[str, str], list[tuple[str, Any]]]:
    """For each route the addresses, behind the path, and bodies with which it is asked."""
    queries, idents = queries_of(asked, known), idents_of(known)
    bodies = bodies_of(asked, known)
    found: dict[tuple[str, str], list[tuple[str, Any]]] = {}
    for route in all_routes():
        key = (route.method, route.path)
        if route.path == "/v1/files":
            found[key] = [("/v1/files?name=0.md", b"# Eve's"), ("/v1/files", b"# Eve's")]
        elif route.path in idents:
            start, _, end = route.path.partition("{")
            rest = end.partition("}")[2]
            found[key] = [(f"{start}{one}{rest}", b"") for one in idents[route.path]]
        elif route.method == "GET":
            found[key] = [(f"{route.path}{one}", b"") for one in queries.get(route.path, [""])]
        else:
            found[key] = [(route.path, json.dumps(one).encode()) for one in bodies[route.path]]
    return found


def _question() -> dict[str, Any]:
    return {"question": "What is in the secret harbour?", "k": 5, "max_tokens": 1_000}


def told(asked: Asked, hidden: Hidden, roles: tuple[Role, ...] = ROLES) -> Told:
    """Every answer, first of what reads, so that what writes comes after it in both homes."""
    known = Known(asked, hidden)
    found: Told = {}
    calls = calls_of(asked, known)
    for method, path in sorted(calls, key=lambda one: (one[0] == "POST", one)):
        media = "application/octet-stream" if path == "/v1/files" else ""
        for address, body in calls[method, path]:
            for role in roles:
                call = (method, address, body, media)
                found[role, call] = asked.ask(role, method, address, body, media)
    return found


def different(one: Told, other: Told) -> list[Any]:
    """What is asked in one and not in the other, and what is answered otherwise."""
    calls = dict.fromkeys((*one, *other))
    return [
        (call, one.get(call), other.get(call)) for call in calls if one.get(call) != other.get(call)
    ]


def test_what_is_hidden_is_told_nowhere(tmp_path: Path) -> None:
    """Not a byte differs to a reader or a writer, or to a reader when what was written is found."""
    root = tmp_path / "r"
    more = ServerVariant(root, secret=True)
    hidden = more.hidden(Scope(user=EVE))
    assert len(hidden.docs) > 10
    with more.serving() as asked:
        first = told(asked, hidden)
        more.work(asked.app)
        after = told(asked, hidden, ("reader",))
    root.rename(tmp_path / "more")
    less = ServerVariant(root, secret=False)
    assert less.hidden(Scope(user=EVE)).docs == ()
    with less.serving() as asked:
        assert different(first, told(asked, hidden)) == []
        less.work(asked.app)
        assert different(after, told(asked, hidden, ("reader",))) == []
    assert len(first) + len(after) > 2_000
    statuses = {answer.status for answer in first.values()}
    assert {200, 202, 403, 404} <= statuses


def test_an_admin_hears_of_work_and_not_of_what_it_is_about(tmp_path: Path) -> None:
    """Jobs, the notebook's log, sources and dead letters of others have no path, title or cause."""
    twice = ServerVariant(tmp_path / "r", secret=True)
    jobs = twice.hidden(Scope(user=EVE)).jobs
    with twice.serving() as asked:
        asked.app.notebook.hand_in(b"# A waiting secret\n", None, ("hush",))
        with asked.app.store.write() as txn:
            for claim in queue.claim(txn, twice.clock, ["organize"], limit=1, lease_ms=1_000):
                queue.fail(txn, twice.clock, claim, "secret.md: no space", permanent=True)
        calls = [
            *(("GET", f"/v1/{name}", b"") for name in ("jobs", "sources", "stats")),
            *(("GET", f"/jobs/{one}", b"") for one in jobs),
            ("GET", "/v1/notes/log?limit=20", b""),
            *(("GET", f"/v1/jobs/{one}", b"") for one in jobs),
        ]
        for call in calls:
            answer = asked.ask("admin", *call)
            assert answer.status == 200, call
            for word in (b"secret", b"mine.md", b"hush", b"harbour", str(twice.root).encode()):
                assert word not in answer.body, call
        log = asked.ask("admin", "GET", "/v1/notes/log?limit=20").json
        assert "from-eve/own/own.md" in {row["path"] for row in log}
        rows = asked.ask("admin", "GET", "/v1/jobs").json["jobs"]
        assert sum(row["path"] is None and row["subject"] == "" for row in rows) == 3
