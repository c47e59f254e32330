"""`kb serve`: docs are handed in and removed over HTTP, each by who asks and as theirs."""

import concurrent.futures
import contextlib
import http.client
import socket
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import loopback
import pytest
from commands import Home
from http_server import HOST, ConfiguredHome, Got, Running, serving, settings, until
from loopback import Answer, LoopbackServer

from kb.model.clock import SystemClock
from kb.store.jobs import queue
from kb.store.store import Store

UPLOAD_BYTES_MAX: Final = 200_000
USERS: Final = {
    "ada": "writer",
    "bob": "writer",
    "eve": "admin",
    "ida": "reader",
    "local": "writer",
}


class Shared:
    """A server with a token to each user, and a place that pages are fetched from."""

    def __init__(self, home: Home, server: Running, pages: LoopbackServer) -> None:
        self.home = home
        self.server = server
        self.pages = pages
        self.tokens: dict[str, str] = {}

    def add(self, user: str, **body: object) -> Got:
        return self.server.post("/v1/docs", body, self.tokens[user])

    def upload(self, user: str, name: str, data: bytes, more: str = "", **headers: str) -> Got:
        said = {"content_type": "application/octet-stream", **headers}
        path = f"/v1/files?name={urllib.parse.quote(name, safe='')}{more}"
        return self.server.ask("POST", path, data, token=self.tokens[user], **said)

    def read(self, user: str, doc: str) -> Got:
        return self.server.get(f"/v1/docs/{doc}", self.tokens[user])

    def remove(self, user: str, doc: str) -> Got:
        return self.server.post(f"/v1/docs/{doc}/remove", {}, self.tokens[user])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    folder = tmp_path_factory.mktemp("writes")
    said = settings(upload_bytes_max=UPLOAD_BYTES_MAX, body_bytes_max=50_000)
    with loopback.serving() as pages:
        allow = ("--cfg", f"fetch.allow+={HOST}:{pages.port}")
        home = ConfiguredHome(folder / "home", (*said, *allow))
        with serving(home, "--log", "json") as server:
            made = Shared(home, server, pages)
            # The operator's own, from before there were tokens.
            first = server.post("/v1/docs", {"text": "The operator's plan.", "title": "Plan"})
            assert (first.status, first.json["status"]) == (200, "added")
            for user, role in USERS.items():
                done = home.run("token", "add", user, "--user", user, "--role", role)
                made.tokens[user] = done.out.strip()
            yield made


def ok(got: Got) -> dict[str, Any]:
    assert got.status == 200, got.body
    found: dict[str, Any] = got.json
    return found


def test_a_text_becomes_a_doc_of_its_users_own(shared: Shared) -> None:
    """Private to who handed it in unless they say otherwise; found once the workers have it."""
    said = ok(shared.add("ada", text="# Rope\n\nHemp is strong.", title="Rope", tags=["sea"]))
    assert (said["status"], said["source"], said["warnings"]) == ("added", "-", [])
    doc = said["doc_id"]
    assert ok(shared.read("ada", doc))["title"] == "Rope"
    for other in ("bob", "eve", "local"):
        assert shared.read(other, doc).status == 404
    hits = until(
        lambda: shared.server.get("/v1/search?q=hemp&mode=lexical", shared.tokens["ada"]).json[
            "hits"
        ]
    )
    assert hits[0]["tags"] == ["sea"]
    again = ok(shared.add("ada", text="# Rope\n\nHemp is strong.", title="Rope"))
    assert (again["status"], again["doc_id"], again["indexed"]) == ("unchanged", doc, True)
    changed = ok(shared.add("ada", text="Sisal.", title="Rope", visibility="shared"))
    assert changed["status"] == "updated"
    assert ok(shared.read("bob", changed["doc_id"]))["text"] == "Sisal.\n"


def test_nobody_writes_over_anothers(shared: Shared) -> None:
    """The same title, page or file name of two users is two sources, and neither learns of that."""
    shared.pages.routes["/tide"] = Answer(
        b"# Tide\n\nTwice a day.", 200, {"Content-Type": "text/markdown"}
    )
    page = shared.pages.url("/tide")
    answers: dict[str, list[dict[str, Any]]] = {}
    for user in ("ada", "bob", "local"):
        answers[user] = [
            ok(shared.add(user, text=f"The plan of {user}.", title="Scheme")),
            ok(shared.add(user, url=page)),
            ok(shared.upload(user, "scheme.md", b"The scheme in a file.")),
        ]
        assert [one["status"] for one in answers[user]] == ["added"] * 3
        assert [one["source"] for one in answers[user]] == ["-", page, "scheme.md"]
    docs = [one["doc_id"] for rows in answers.values() for one in rows]
    assert len(set(docs)) == len(docs)
    assert ok(shared.read("ada", answers["ada"][0]["doc_id"]))["text"] == "The plan of ada.\n"
    for doc in (one["doc_id"] for one in answers["ada"]):
        assert shared.read("bob", doc).status == 404
    seen = shared.server.get("/v1/sources", shared.tokens["eve"]).json["sources"]
    assert page not in {one["location"] for one in seen}
    origins = shared.home.run("sources", "--json").json["sources"]
    owners = [one["owner"] for one in origins if one["location"] == page]
    assert owners == [None, "ada", "bob"]
    synced = shared.home.run("sync-all", "--interval-min", "0", "--json").json
    assert (synced["added"], synced["unchanged"], synced["failed"]) == (0, 3, 0)


def test_the_operators_sources_stay_theirs(shared: Shared) -> None:
    """What the operator names on the command line is what they handed in, and no user's."""
    mine = shared.home.run("add", "-", "--title", "Plan", "--json", stdin="The operator's plan.")
    assert mine.json["unchanged"] == 1
    assert ok(shared.add("ada", text="Ada's plan.", title="Plan"))["status"] == "added"
    # A token of the local user is theirs, too.
    assert ok(shared.add("local", text="Another plan.", title="Plan"))["status"] == "updated"


def test_a_file_is_read_by_its_name_and_bytes(shared: Shared) -> None:
    """The extension says what text is; a title, tags and who may see it are taken over."""
    html = b"<!doctype html><title>Knots</title><p>A bowline holds."
    said = ok(shared.upload("ada", "knots.html", html, "&title=Knots+and+bends&tag=a&tag=b"))
    read = ok(shared.read("ada", said["doc_id"]))
    assert (read["title"], "bowline" in read["text"]) == ("Knots and bends", True)
    listed = shared.server.get("/v1/docs?tag=a&tag=b", shared.tokens["ada"]).json["docs"]
    assert [(one["mime"], one["kind"], one["tags"]) for one in listed] == [
        ("text/html", "file", ["a", "b"])
    ]
    odd = ok(shared.upload("ada", "né\u202f#1 100%.md", "# Ünïcode".encode(), "&visibility=public"))
    assert odd["source"] == "né\u202f#1 100%.md"
    assert ok(shared.read("bob", odd["doc_id"]))["text"] == "# Ünïcode\n"


@pytest.mark.parametrize(
    "name", ["", "a/b.md", "..", ".", "a\\b.md", "a\0.md", "a\nb.md", "é" * 128]
)
def test_a_name_is_a_plain_one(shared: Shared, name: str) -> None:
    """No folder, no control character, at most 255 bytes."""
    got = shared.upload("ada", name, b"text")
    assert (got.status, got.json["field"]) == (422, "name")


def test_what_cannot_be_read_says_why(shared: Shared) -> None:
    """422 with the words of the parser, and nothing is kept."""
    before = shared.server.get("/v1/docs", shared.tokens["bob"]).json["total"]
    for name, data, words in (
        ("a.pdf", b"%PDF-1.7 nothing", "PDF"),
        ("a.exe", b"MZ\x90" + bytes(99), "is not a format kb reads"),
        ("a.md", b"  \n", "it is empty"),
    ):
        got = shared.upload("bob", name, data)
        assert (got.status, got.json["code"]) == (422, "not_taken_in")
        assert words in got.json["detail"]
    for body, field in (
        ({}, "text"),
        ({"text": "a", "url": "https://example.org"}, "text"),
        ({"text": "a", "visibility": "secret"}, "visibility"),
        ({"text": "a", "owner": "ada"}, "owner"),
        ({"url": "file:///etc/passwd"}, "url"),
    ):
        got = shared.add("bob", **body)
        assert (got.status, got.json.get("field")) == (422, field), body
    assert shared.server.get("/v1/docs", shared.tokens["bob"]).json["total"] == before


def test_no_private_address_is_fetched(shared: Shared) -> None:
    """A page goes through the one fetcher: what the settings do not name is refused."""
    with loopback.serving() as inside:
        got = shared.add("ada", url=inside.url("/"))
        assert (got.status, got.json["code"]) == (422, "not_taken_in")
        assert "not a public address" in got.json["detail"]
        assert inside.connections == 0


def test_what_is_too_large_or_no_file_is_refused(shared: Shared) -> None:
    """413 over the limit and 415 for another type, also where the size is not said before."""
    assert shared.upload("ada", "a.md", b"a" * UPLOAD_BYTES_MAX).status == 200
    assert shared.upload("ada", "a.md", b"a" * (UPLOAD_BYTES_MAX + 1)).status == 413
    chunked = http.client.HTTPConnection(HOST, shared.server.port, timeout=120)
    headers = {
        "authorization": f"Bearer {shared.tokens['ada']}",
        "content-type": "application/octet-stream",
    }
    parts = (b"a" * 50_000 for _ in range(5))
    chunked.request("POST", "/v1/files?name=a.md", parts, headers, encode_chunked=True)
    assert chunked.getresponse().status == 413
    chunked.close()
    for said in ("application/json", "text/markdown", ""):
        assert shared.upload("ada", "a.md", b"text", content_type=said).status == 415
    packed = shared.upload("ada", "a.md", b"\x1f\x8b", content_encoding="gzip")
    assert packed.status == 415
    assert shared.upload("ada", "a.md", b"text", "&nonsense=1").json["field"] == "nonsense"
    assert not list((shared.home.root / "tmp").iterdir())


def test_a_body_that_is_said_to_be_too_long_is_not_waited_for(shared: Shared) -> None:
    """Whoever asks first whether to send it hears no at once."""
    connection = http.client.HTTPConnection(HOST, shared.server.port, timeout=120)
    connection.putrequest("POST", "/v1/files?name=a.md")
    for name, value in {
        "authorization": f"Bearer {shared.tokens['ada']}",
        "content-type": "application/octet-stream",
        "content-length": "10000000000",
        "expect": "100-continue",
    }.items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_many_files_at_once(shared: Shared) -> None:
    """Those that find a place are kept, each once, and the others are told to come again."""
    with concurrent.futures.ThreadPoolExecutor(8) as crowd:
        calls = [
            crowd.submit(shared.upload, "bob", f"{number}.md", f"# {number}".encode() * 5_000)
            for number in range(24)
        ]
        got = [call.result() for call in calls]
    assert {one.status for one in got} <= {200, 503}
    kept = [one.json["doc_id"] for one in got if one.status == 200]
    assert len(set(kept)) == len(kept) >= 4
    assert all(one.headers["retry-after"] == "1" for one in got if one.status == 503)


def test_an_upload_that_is_broken_off_leaves_nothing(shared: Shared) -> None:
    """What comes meanwhile is given their places; they have no name on the disk."""
    head = (
        "POST /v1/files?name=a.md HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9000\r\n"
        f"authorization: Bearer {shared.tokens['ada']}\r\n"
        "content-type: application/octet-stream\r\n\r\n"
    )
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            half = stack.enter_context(socket.create_connection((HOST, shared.server.port)))
            half.sendall(head.encode() + b"a" * 5_000)
        until(lambda: shared.upload("bob", "b.md", b"# B").status == 200)
        assert not list((shared.home.root / "tmp").iterdir())
        assert shared.add("ada", text="A text meanwhile.").status == 200
    until(lambda: shared.upload("bob", "b.md", b"# B").status == 200)


def test_a_doc_is_removed_by_whose_it_is(shared: Shared) -> None:
    """By its user and by admins that see it; what is hidden is as what is not there."""
    mine = ok(shared.add("ada", text="To be forgotten.", visibility="private"))["doc_id"]
    missing = "d" + "0" * (len(mine) - 1)

    def refused(user: str, doc: str) -> dict[str, Any]:
        got = shared.remove(user, doc)
        assert got.status == 404
        return {key: value for key, value in got.json.items() if key != "request_id"}

    for other in ("bob", "eve"):
        hidden = refused(other, mine)
        hidden["detail"] = hidden["detail"].replace(mine, missing)
        assert hidden == refused(other, missing)
    assert shared.remove("ida", mine).status == 403
    assert ok(shared.remove("ada", mine)) == {"removed": [mine]}
    assert shared.read("ada", mine).status == 404
    assert shared.remove("ada", mine).status == 404
    back = ok(shared.add("ada", text="To be forgotten."))
    assert (back["status"], back["doc_id"]) == ("resurrected", mine)
    shown = ok(shared.add("ada", text="For all to see.", visibility="shared"))["doc_id"]
    assert (shared.remove("bob", shown).status, shared.read("bob", shown).status) == (403, 200)
    assert ok(shared.remove("eve", shown)) == {"removed": [shown]}


def test_nothing_is_said_where_nothing_is_asked(shared: Shared) -> None:
    """A command without input takes no body or an empty object, and no form."""
    doc = ok(shared.add("ada", text="Soon gone."))["doc_id"]
    path, token = f"/v1/docs/{doc}/remove", shared.tokens["ada"]
    form = "application/x-www-form-urlencoded"
    assert shared.server.ask("POST", path, b"a=1", token=token, content_type=form).status == 415
    assert shared.server.post(path, {"id": doc}, token).status == 422
    assert shared.server.ask("POST", path, token=token).status == 200


def test_the_log_tells_no_name_of_a_file(shared: Shared, tmp_path: Path) -> None:
    """Of an upload its route, status and size are told, and no more."""
    home = Home(tmp_path / "home")
    with serving(home, "--log", "json") as server:
        got = server.ask(
            "POST", "/v1/files?name=canary.md", b"text", content_type="application/octet-stream"
        )
        assert got.status == 200
        code, err = server.stop()
    assert (code, "canary" in err) == (0, False)
    assert '"route":"/v1/files"' in err


def test_a_dead_letter_is_tried_again(tmp_path: Path) -> None:
    """A job that failed is listed as such, and goes back to the queue over HTTP and by command."""
    home = Home(tmp_path / "home")
    (tmp_path / "a.md").write_text("# A\n\nText.")
    assert home.run("add", "--no-wait", tmp_path / "a.md").code == 0
    with Store.open(home.root / "store") as store, store.write() as txn:
        (claim,) = queue.claim(txn, SystemClock(), ["chunk"], limit=1, lease_ms=60_000)
        queue.fail(txn, SystemClock(), claim, "broken", permanent=True)
    job = claim.job.job_id
    assert home.run("job", "retry", job, "--json").json["status"] == "queued"
    assert home.run("job", "retry", job).code == 2
    assert home.run("job", "retry", "j9").code == 4
    assert (home.run("job", "retry").code, home.run("job", job, job).code) == (2, 2)
    with Store.open(home.root / "store") as store, store.write() as txn:
        (claim,) = queue.claim(txn, SystemClock(), ["chunk"], limit=1, lease_ms=60_000)
        queue.fail(txn, SystemClock(), claim, "broken", permanent=True)
    with serving(home) as server:
        failed = server.get("/v1/jobs?state=failed").json["jobs"]
        assert [(one["job_id"], one["reason"]) for one in failed] == [(job, "broken")]
        assert server.get("/v1/jobs?state=lost").status == 422
        got = server.post(f"/v1/jobs/{job}/retry", {})
        assert (got.status, got.json["attempts"]) == (200, 0)
        until(lambda: server.get("/v1/docs").json["docs"][0]["indexed"])
        assert server.get("/v1/jobs?state=failed").json["jobs"] == []
        assert server.post("/v1/jobs/j9/retry", {}).status == 404


def test_an_answered_question_is_kept_and_measured(shared: Shared) -> None:
    """Who may write says what answers a question, of what they may read; `kb eval` asks it."""
    doc = ok(shared.add("ada", text="# Boiler\n\nServiced each October.", title="Boiler"))["doc_id"]
    until(lambda: ok(shared.server.get("/v1/search?q=october", shared.tokens["ada"]))["hits"])

    def answered(user: str, query: str = "when is the boiler serviced?") -> Got:
        body = {"query": query, "id": doc}
        return shared.server.post("/v1/questions", body, shared.tokens[user])

    assert shared.home.run("eval").code == 2
    assert answered("bob").status == 404
    assert answered("ida").status == 403
    assert ok(answered("ada")) == ok(answered("ada"))
    assert answered("ada", " ").status == 422
    report = shared.home.run("eval", "--json").json
    assert report["questions"] == 1
    assert report["rows"][0]["mrr_at_10"] == 1.0
    line = shared.home.run("eval", "--gathered").out
    assert "when is the boiler serviced?" in line
    assert shared.home.run("eval", "-", "--json", stdin=line).json["questions"] == 1
