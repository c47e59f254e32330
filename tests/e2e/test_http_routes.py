"""`kb serve`: every route, asked over HTTP of the real command."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from commands import Home
from http_server import ConfiguredHome, Running, serving, until

from kb.home.spaces.homes import SpaceHome
from kb.home.spaces.spaces import Spaces
from kb.model.config import EmbedSettings, Settings
from kb.model.doc import OPERATOR
from kb.operations.table import HELP, LEARN, TOOLS, call
from kb.serve.http_server import all_routes


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("http")
    (folder / "src").mkdir()
    for name, text in {
        "boat.md": "# Boat\n\nThe keel is made of oak. See https://example.org #sails",
        "soup.md": "# Soup\n\nSoup needs salt, and a bay leaf.",
        "long.md": "# Long\n\n" + "The harbour is deep and wide. " * 200,
    }.items():
        (folder / "src" / name).write_text(text)
    made = Home(folder / "home")
    assert made.run("add", folder / "src").code == 0
    return made


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Running]:
    with serving(home) as running:
        yield running


def doc_id(home: Home, name: str) -> str:
    return home.ids()[name]


def passage_id(server: Running, query: str) -> str:
    hits = server.get(f"/v1/search?q={query}&mode=lexical").json["hits"]
    return str(hits[0]["chunk_id"])


# The body that each tool is asked with over HTTP, `D` for a doc's id; and whether it has an answer.
TOOL_BODIES: dict[str, dict[str, Any]] = {
    "kb_search": {"query": "oak", "limit": 2},
    "kb_ask": {"question": "What is the keel made of?"},
    "kb_fetch": {"id": "D"},
    "kb_list_docs": {"limit": 1},
    "kb_similar": {"id": "D", "limit": 1},
    "kb_search_entities": {"prefix": "#"},
    "kb_pack_list": {},
    "kb_pack_read": {"pack": "none", "doc": "none"},
    "kb_pack_search": {"pack": "none", "query": "none"},
    "kb_pack_neighbors": {"pack": "none", "doc": "none"},
    "learn": {"topic": "none"},
    "help": {"action": "guidance"},
}
NO_SUCH = {"kb_pack_read": 404, "kb_pack_search": 404, "kb_pack_neighbors": 404, "learn": 404}


def test_each_tool_answers_as_it_does_elsewhere(home: Home, server: Running) -> None:
    """Over HTTP a tool's answer is byte for byte that of `call`, its errors by status."""
    assert set(TOOL_BODIES) == {tool.name for tool in (*TOOLS, HELP, LEARN)}
    doc = doc_id(home, "boat.md")
    settings = Settings(embed=EmbedSettings(kind="hashing"))
    with Spaces.open([SpaceHome(name="home", home=home.root)], lambda _: settings) as spaces:
        for name, body in TOOL_BODIES.items():
            asked = {key: doc if value == "D" else value for key, value in body.items()}
            got = server.post(f"/v1/tools/{name}", asked)
            if name == "help":
                assert (got.status, got.json["field"]) == (422, "query")
                continue
            assert got.status == NO_SUCH.get(name, 200), (name, got.body)
            expected = call(name, asked, spaces, OPERATOR)
            if got.status == 200:
                assert got.body == expected
            else:
                assert got.json["detail"] == json.loads(expected)["error"]["message"]


def test_each_address_answers(home: Home, server: Running) -> None:
    """Each route that is read has an answer here, and no route is left out."""
    doc, passage = doc_id(home, "boat.md"), passage_id(server, "oak")
    addresses = {
        "/v1/search": "/v1/search?q=oak&tag=none&tag=other&kind=file",
        "/v1/docs": "/v1/docs?limit=2",
        "/v1/docs/{id}": f"/v1/docs/{doc}?start=2&end=6",
        "/v1/passages/{id}": f"/v1/passages/{passage}?neighbours=0",
        "/v1/similar/{id}": f"/v1/similar/{doc}?k=1",
        "/v1/entities": "/v1/entities?prefix=%23",
        "/v1/packs": "/v1/packs?limit=5",
        "/v1/facets": "/v1/facets?limit=1",
        "/v1/growth": "/v1/growth?by=date&tag=none&limit=3",
        "/v1/me": "/v1/me",
        "/v1/topics": "/v1/topics",
        "/v1/guide": "/v1/guide?q=how+do+I+add+a+folder",
        "/v1/notes": "/v1/notes?limit=5",
        "/v1/notes/log": "/v1/notes/log?limit=5",
        "/v1/sources": "/v1/sources?limit=1",
        "/v1/stats": "/v1/stats",
        "/v1/jobs": "/v1/jobs?limit=3",
        "/v1/events": f"/v1/events?doc={doc}",
        "/metrics": "/metrics",
        "/health/live": "/health/live",
        "/health/ready": "/health/ready",
        "/openapi.json": "/openapi.json",
        "/content": "/content?query=keel",
        "/": "/?any=query",
        "/page/{name}": "/page/app.js",
    }
    apart = {"/jobs/{id}", "/v1/jobs/{id}", "/open/{link}"}
    assert set(addresses) | apart == {one.path for one in all_routes() if one.method == "GET"}
    got = {path: server.get(address) for path, address in addresses.items()}
    assert {path: one.status for path, one in got.items()} == dict.fromkeys(addresses, 200)
    assert got["/v1/search"].json["hits"] == []
    assert got["/v1/docs/{id}"].json["text"] == "Boat"
    assert got["/v1/passages/{id}"].json["chunk_id"] == passage
    assert [one["surface"] for one in got["/v1/entities"].json["entities"]] == ["#sails"]
    assert got["/v1/facets"].json["kinds"] == [{"value": "file", "docs": 3}]
    assert [one["docs"] for one in got["/v1/facets"].json["sources"]] == [3]
    assert got["/v1/guide"].json["found"] is True
    assert "kb add" in got["/v1/guide"].json["chunks"][0]["content"]
    assert got["/v1/notes"].json == {"notes": [], "total": 0, "next_cursor": None}
    assert got["/v1/sources"].json["total"] == 1
    assert got["/v1/stats"].json["docs"] == {"active": 3}
    assert got["/v1/events"].body.endswith(b"event: done\ndata: {}\n\n")
    assert b'kb_jobs{state="ready"} 0\n' in got["/metrics"].body
    assert (
        b'kb_http_requests_total{route="/v1/docs/{id}",method="GET"' in server.get("/metrics").body
    )


def test_an_id_may_be_the_path_of_a_file(home: Home, server: Running) -> None:
    """Whole, however long, and with its slashes encoded, wherever an id is taken."""
    folder = Path(home.root).parent / "src" / Path(*["a folder with a long name"] * 5)
    folder.mkdir(parents=True)
    file = folder / "boat & keel?.md"
    file.write_text("# Keel\n\nAnother keel of oak. [[boat]]\n")
    assert home.run("add", file).code == 0
    place = quote(str(file), safe="")
    assert server.get(f"/v1/docs/{place}").json["source"] == str(file)
    assert server.get("/v1/docs/src%2Fboat.md").json["title"] == "Boat"
    assert server.get(f"/v1/similar/{place}?k=1").json["hits"][0]["title"] == "Boat"
    linked = server.get(f"/v1/search?q=keel&links_from={place}&mode=lexical").json["hits"]
    assert [hit["title"] for hit in linked] == ["Boat"]
    assert server.get(f"/v1/docs?doc={place}&doc=boat.md").json["total"] == 2
    near = server.get("/v1/search?q=keel&doc=src/bote.md").json
    assert (near["code"], "src/boat.md" in near["detail"]) == ("not_found", True)
    assert server.get("/v1%2Fdocs").status == 404
    assert server.get("/v1/d%6fcs").status == 200
    assert home.run("rm", "--yes", file).code == 0


def test_docs_are_read_page_by_page(server: Running) -> None:
    """The cursor of each page brings the next, and every doc comes once."""
    seen, cursor = [], ""
    while True:
        page = server.get(f"/v1/docs?limit=1{cursor}").json
        seen += [Path(one["source"]).name for one in page["docs"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert sorted(seen) == ["boat.md", "long.md", "soup.md"]


def test_a_read_is_not_sent_twice(server: Running) -> None:
    """With the ETag of what it has, a reader gets 304 and no body; a change gives another tag."""
    first = server.get("/v1/docs")
    again = server.get("/v1/docs", if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    # A cache would take these over for the body that it has.
    assert not {"content-length", "content-type", "transfer-encoding"} & set(again.headers)
    assert server.get("/v1/docs?limit=1").headers["etag"] != first.headers["etag"]
    packed = server.get("/v1/docs", accept_encoding="gzip")
    assert packed.headers["etag"] == first.headers["etag"]


def test_what_is_long_is_packed_where_that_is_accepted(home: Home, server: Running) -> None:
    """Gzip on demand, and the same JSON inside; HEAD has the headers alone."""
    path = f"/v1/docs/{doc_id(home, 'long.md')}"
    plain, packed = server.get(path), server.get(path, accept_encoding="br, gzip;q=0.5")
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body) / 4
    assert packed.json == plain.json
    assert "content-encoding" not in server.get(path, accept_encoding="gzip;q=0").headers
    head = server.ask("HEAD", path)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(plain.body))


def test_booleans_are_what_people_type(server: Running) -> None:
    """In any case; of anything else it is said what is taken."""
    for words, is_explained in (
        (("true", "1", "yes", "ON", "Yes"), True),
        (("false", "0", "no", "Off"), False),
    ):
        for word in words:
            got = server.get(f"/v1/search?q=keel&explain={word}")
            assert got.status == 200
            assert {bool(hit.get("explain")) for hit in got.json["hits"]} == {is_explained}
    refused = server.get("/v1/search?q=tea&explain=maybe")
    assert refused.status == 422
    assert refused.json["detail"] == "explain is one of true, 1, yes, on, false, 0, no, off"


def test_an_error_is_a_problem(server: Running) -> None:
    """Problems have a type, a code, the field at fault, and the id that the log has too."""
    got = server.get("/v1/search?q=x&k=0")
    assert got.headers["content-type"] == "application/problem+json"
    problem = got.json
    assert problem.pop("request_id") == got.headers["x-request-id"]
    assert problem == {
        "type": "urn:kb:problem:invalid_input",
        "title": "Unprocessable Entity",
        "status": 422,
        "detail": "Expected `int` >= 1 - at `$.k`",
        "code": "invalid_input",
        "field": "k",
    }
    missing = server.get("/v1/search").json
    assert (missing["field"], missing["detail"]) == ("q", "Object missing required field `q`")
    assert "at `$.tag[0]`" in server.get("/v1/search?q=x&tag=").json["detail"]
    assert "did you mean `q`?" in server.get("/v1/search?query=x").json["detail"]
    assert "did you mean `tag`?" in server.get("/v1/search?q=x&tags=a").json["detail"]
    none_near = server.get("/v1/growth?zzz=1").json
    assert (none_near["field"], "by, doc, from" in none_near["detail"]) == ("zzz", True)
    body = server.post("/v1/search", {"query": "x", "tag": ["a"]}).json
    assert (body["field"], "did you mean `tags`?" in body["detail"]) == ("tag", True)
    assert server.get("/v1/search?q=a&q=b").json["field"] == "q"
    assert "a date is written as" in server.get("/v1/search?q=a&since=May").json["detail"]
    assert "hybrid, lexical, dense" in server.get("/v1/search?q=a&mode=fast").json["detail"]
    assert server.get("/v1/docs/d0000").status == 404
    assert server.get("/v1/docs/c0000").status == 404
    assert server.get("/v1/docs/d").json["code"] == "ambiguous_id"
    assert server.get("/jobs/j9").status == 404


def test_a_note_goes_in_and_comes_out(home: Home, server: Running) -> None:
    """Queued at once, placed by the server's workers, then read, searched and asked for."""
    added = server.post(
        "/content", {"content": "# Mast\n\nThe mast is pine.", "hint": "rig", "tags": ["tall"]}
    )
    assert (added.status, added.json["status"]) == (202, "queued")
    job = added.json["job_id"]
    done = until(lambda: (one := server.get(f"/jobs/{job}").json)["status"] == "done" and one)
    assert done["path"] == "rig/mast.md"
    note = server.get("/content?path=rig/mast.md")
    assert note.json == {"path": "rig/mast.md", "content": "# Mast\n\nThe mast is pine.\n"}
    raw = server.get("/content?query=mast+pine&mode=raw").json
    assert raw[0] == {"path": "rig/mast.md", "content": "# Mast\n\nThe mast is pine."}
    answer = server.get("/content?query=Which+wood+is+the+mast%3F").json
    assert answer["answer"].startswith("The mast is pine. [1]")
    assert answer["sources"][0] == "rig/mast.md"
    assert home.run("note", "get", "rig/mast.md").out == note.json["content"]
    assert "- [Mast](rig/mast.md)" in server.get("/content?path=INDEX.md").json["content"]


def test_another_process_commits(home: Home, server: Running, tmp_path: Path) -> None:
    """What a command adds, the next request finds."""
    assert server.get("/v1/search?q=walrus&mode=lexical").json["hits"] == []
    (tmp_path / "new.md").write_text("# New\n\nA walrus swims by.")
    assert home.run("add", tmp_path / "new.md").code == 0
    found = server.get("/v1/search?q=walrus&mode=lexical").json["hits"]
    assert [one["title"] for one in found] == ["New"]
    assert home.run("rm", found[0]["doc_id"], "--yes").code == 0
    assert server.get("/v1/search?q=walrus&mode=lexical").json["hits"] == []


def test_the_description_is_what_the_tools_say(server: Running) -> None:
    """Each route is described, by the schemas of the tools, and no reference is loose."""
    described = server.get("/openapi.json").json
    routes = {(one.path, one.method.lower()) for one in all_routes()}
    assert routes == {(path, name) for path, said in described["paths"].items() for name in said}
    schemas = described["components"]["schemas"]
    text = json.dumps(described)
    for name in text.split('"$ref": "')[1:]:
        assert name.partition('"')[0].removeprefix("#/components/schemas/") in schemas
    for tool in TOOLS:
        body = described["paths"][f"/v1/tools/{tool.name}"]["post"]["requestBody"]
        ref = body["content"]["application/json"]["schema"]["$ref"]
        said = schemas[ref.rpartition("/")[2]]
        own = json.loads(tool.input_schema)
        own.pop("$defs", None)
        said.pop("title"), own.pop("title")
        for name in tool.untold:
            del said["properties"][name]
        assert said == own
    shown = described["paths"]["/v1/search"]["get"]["parameters"]
    names = {field.name for field in msgspec.structs.fields(TOOLS[0].input)}
    assert len(shown) == len({*names, "marks", "offset", "space"})
    assert {"q", "tag"} <= {one["name"] for one in shown}


def test_each_status_is_described(server: Running) -> None:
    """What a route takes and may answer stands in its description: types, parameters, statuses."""
    paths = server.get("/openapi.json").json["paths"]
    upload = paths["/v1/files"]["post"]
    assert set(upload["requestBody"]["content"]) == {"application/octet-stream"}
    assert {"name", "title", "tag", "visibility"} <= {one["name"] for one in upload["parameters"]}
    assert {"200", "401", "403", "408", "413", "415", "422", "503"} <= set(upload["responses"])
    remove = paths["/v1/docs/{id}/remove"]["post"]
    assert [(one["name"], one["in"]) for one in remove["parameters"]] == [("id", "path")]
    assert {"200", "404", "409"} <= set(remove["responses"])
    events = paths["/v1/events"]["get"]
    assert set(events["responses"]["200"]["content"]) == {"text/event-stream"}
    assert "304" in paths["/v1/docs"]["get"]["responses"]
    assert "401" not in paths["/health/live"]["get"]["responses"]


def test_topics_are_listed(home: Home, tmp_path: Path) -> None:
    """Where there is something to learn it is listed, and `learn` answers."""
    (tmp_path / "tides.md").write_text("# Tides\n\nTwice a day.")
    said = ("--cfg", f"kb.topic.sea.subjects={tmp_path}", "--cfg", "kb.topic.sea.title=The sea")
    with serving(ConfiguredHome(home.root, said)) as server:
        rows = server.get("/v1/topics").json["topics"]
        assert rows == [{"id": "sea", "title": "The sea", "introduction": None}]
        learned = server.post("/v1/tools/learn", {"topic": "sea", "subjects": "tides"})
        assert "Twice a day." in learned.json["text"]
