"""Are the answers still the same? Asks two revisions the same on one home, and compares bytes.

The older revision makes the home, of `examples/` and made-up notes; then each revision serves it in
turn and runs commands on it. What differs is printed, first the fields that only one side has.
Run with `make compare-answers BEFORE=REVISION`. With --home a copy of that one is searched instead,
with questions of the test sets in --data, in all three modes and with all that explains a hit:
`make compare-answers BEFORE=REVISION GROWN=HOME`.
"""

import argparse
import http.client
import itertools
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import corpus
from revisions import REPOSITORY, Revision

NOTES: Final = 60
SHOWN: Final = 20
QUESTIONS: Final = 40
_QUERIES: Final = (
    "how often is the garden watered",
    "boiler pressure",
    "night train to Vienna",
    "sourdough starter",
    "红烧肉",
    "energy survey roof",
    "lease notice period",
    "the water in the garden",
    "project meeting minutes",
    "zebra quantum",
    "#house",
    "waipo",
    "what is the rent",
    "how long does the train take",
    "salt and flour",
    "glossary of terms",
    "market school river",
    "Who attended in March?",
    "packing list for the mountains",
    "the",
)
_TOOLS: Final = (
    "kb_search",
    "kb_ask",
    "kb_list_docs",
    "kb_search_entities",
    "kb_similar",
    "kb_fetch",
)


def requests(ids: list[str], passages: list[str]) -> Iterator[tuple[str, str, Any]]:
    """What is asked over HTTP: method, address, body."""
    modes = ("hybrid", "lexical", "dense")
    for query, mode in itertools.product(_QUERIES, modes):
        yield "GET", f"/v1/search?q={quote(query)}&mode={mode}", None
        yield "POST", "/v1/tools/kb_search", {"query": query, "mode": mode, "explain": True}
    for query in _QUERIES:
        yield "GET", f"/v1/search?q={quote(query)}&marks=true&k=3", None
        yield "GET", f"/v1/search?q={quote(query)}&kind=file&min_score=0.3", None
        yield "POST", "/v1/tools/kb_search", {"query": query, "max_tokens": 200, "tags": ["house"]}
        yield "POST", "/v1/tools/kb_ask", {"question": query, "with_text": True}
        yield "GET", f"/v1/guide?q={quote(query)}", None
        yield "GET", f"/content?query={quote(query)}&mode=raw", None
    for ident in ids[:20]:
        yield "GET", f"/v1/docs/{ident}", None
        yield "GET", f"/v1/similar/{ident}?k=4", None
        yield "POST", "/v1/tools/kb_fetch", {"id": ident, "start": 3, "end": 90}
        yield "POST", "/v1/tools/kb_similar", {"id": ident}
    for ident in passages[:20]:
        yield "GET", f"/v1/passages/{ident}?neighbours=2", None
        yield "POST", "/v1/tools/kb_fetch", {"id": ident, "max_tokens": 40}
    for limit in (1, 5, 200):
        yield "GET", f"/v1/docs?limit={limit}", None
        yield "GET", f"/v1/facets?limit={limit}", None
        yield "POST", "/v1/tools/kb_list_docs", {"limit": limit, "kinds": ["file"]}
        yield "POST", "/v1/tools/kb_search_entities", {"limit": limit}
    for address in ("/v1/entities?prefix=%23", "/v1/packs", "/v1/topics", "/v1/notes", "/v1/jobs"):
        yield "GET", address, None
    for address in (
        "/v1/docs/d",
        "/v1/docs/none",
        "/v1/search",
        "/v1/search?q=a&k=0",
        "/v1/nowhere",
    ):
        yield "GET", address, None
    for name in _TOOLS:
        yield "POST", f"/v1/tools/{name}", {"unknown": 1}
    for method in ("tools/list", "resources/list", "prompts/list"):
        yield "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}


def commands(ids: list[str]) -> Iterator[tuple[str, ...]]:
    """Commands that print JSON."""
    for query in _QUERIES:
        yield "search", query, "--json"
        yield "search", query, "--explain", "--max-tokens", "300", "--json"
        yield "ask", query, "--json"
    for ident in ids[:10]:
        yield "show", ident, "--json"
        yield "similar", ident, "--json"
    yield "ls", "--json"
    yield "ls", "--status", "all", "--limit", "0", "--json"
    yield "entities", "--json"
    yield "guide", "add a folder", "--json"


def answers_of(side: Revision) -> dict[str, Any]:
    """Every answer of a revision, by what was asked."""
    rows = json.loads(side.run("ls", "--limit", "0", "--json")[1])["docs"]
    ids = sorted(row["doc_id"] for row in rows)
    hits = json.loads(side.run("search", "water house", "-k", "50", "--json")[1])["hits"]
    answers: dict[str, Any] = {}
    with side.served() as port:
        for method, address, body in requests(ids, [hit["chunk_id"] for hit in hits]):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            headers = {"accept": "application/json, text/event-stream"}
            if body is not None:
                headers["content-type"] = "application/json"
            sent = None if body is None else json.dumps(body).encode()
            connection.request(method, address, sent, headers)
            got = connection.getresponse()
            name = f"{method} {address} {json.dumps(body, ensure_ascii=False)}"
            answers[name] = (got.status, without_moment(got.read()))
    for argv in commands(ids):
        answers["kb " + " ".join(argv)] = side.run(*argv)
    return answers


def searches(data: Path) -> list[Any]:
    """What is asked of a home that is there: questions of each set, in each mode."""
    chance = random.Random(1)
    queries = [*corpus.queries(QUESTIONS)]
    for path in sorted(data.glob("*/queries.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        some = chance.sample(lines, min(len(lines), QUESTIONS))
        queries += [json.loads(line)["text"] for line in some]
    modes = ("hybrid", "lexical", "dense")
    return [
        {"query": query, "mode": mode, "explain": True}
        for query, mode in itertools.product(queries, modes)
    ]


def found_by(side: Revision, asked: list[Any]) -> dict[str, Any]:
    """What a revision finds, by what was asked; nothing works on the home meanwhile."""
    answers: dict[str, Any] = {}
    with side.served("--workers", "0") as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for body in asked:
            headers = {"content-type": "application/json"}
            connection.request("POST", "/v1/search", json.dumps(body).encode(), headers)
            got = connection.getresponse()
            answers[json.dumps(body, ensure_ascii=False)] = (got.status, got.read().decode())
    return answers


def without_moment(body: bytes) -> str:
    """A body without what differs from one request to the next."""
    return re.sub(r'"request_id":"[0-9a-f]+"', '"request_id":""', body.decode())


def differences(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """Where two JSON values differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            if name not in before or name not in now:
                yield f"{path}/{name}: only {'now' if name in now else 'before'}"
            else:
                yield from differences(before[name], now[name], f"{path}/{name}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differences(one, other, f"{path}/{number}")
    elif before != now:
        yield f"{path}: {str(before)[:60]!r} became {str(now)[:60]!r}"


def compared(old: Revision, new: Revision, scratch: Path) -> int:
    """How many answers differ."""
    corpus.write_notes(scratch / "notes", NOTES)
    for place in (REPOSITORY / "examples", scratch / "notes"):
        old.run("add", "--recursive", "--tag", "house", str(place))
    # Each runs once unmeasured, so that neither's first look changes what is there.
    new.run("check", "--repair")
    return told(answers_of(old), answers_of(new))


def told(then: dict[str, Any], now: dict[str, Any]) -> int:
    """Say what differs; returns how many answers do."""
    wrong = [name for name in then if then[name] != now[name]]
    for name in wrong[:SHOWN]:
        print(name)
        try:
            pairs = (json.loads(then[name][1]), json.loads(now[name][1]))
        except ValueError:
            pairs = (then[name], now[name])
        for line in list(differences(*pairs))[:5] or [f"status {then[name][0]}, {now[name][0]}"]:
            print("   ", line)
    print(f"{len(then)} asked, {len(then) - len(wrong)} byte for byte the same")
    return len(wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", help="the revision to compare the committed one with")
    parser.add_argument("--home", type=Path, help="a home that is there already; it is copied")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        if options.home:
            subprocess.run(["cp", "-r", "--reflink=auto", options.home, home], check=True)
        sides = [
            Revision(Path(scratch), name, of, home)
            for name, of in (("before", options.before), ("now", "HEAD"))
        ]
        try:
            if options.home:
                asked = searches(options.data)
                sides[0].run("trust", str(home))
                sys.exit(min(1, told(*(found_by(side, asked) for side in sides))))
            sys.exit(min(1, compared(*sides, Path(scratch))))
        finally:
            for side in sides:
                side.remove()


if __name__ == "__main__":
    main()
