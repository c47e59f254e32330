"""`kb serve`: who gets in, who does not, and what each is told."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Home
from http_server import ConfiguredHome, Got, Running, serving, settings, until
from msgspec import Struct

from kb.model.token import role_allows
from kb.serve.http_server import all_routes

SECRET = "a canary in a query"


class Gated(Struct):
    """A server with tokens, and what they are."""

    home: Home
    server: Running
    tokens: dict[str, str]
    hidden: str
    shared: str


def token(home: Home, name: str, *options: str) -> str:
    made = home.run("token", "add", name, *options)
    assert (made.code, made.err) == (0, "")
    assert re.fullmatch(r"kb_[A-Za-z0-9_-]{43}\n", made.out)
    return made.out.strip()


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    folder = tmp_path_factory.mktemp("gate")
    said = settings(origins='["https://page.example"]', hosts='["kb.example"]')
    home = ConfiguredHome(folder / "home", said)
    for name, text in {
        "hidden.md": "# Hidden\n\nThe oak.",
        "shared.md": "# Shared\n\nThe elm.",
    }.items():
        (folder / name).write_text(text)
        assert home.run("add", folder / name).code == 0
    ids = home.ids()
    assert home.run("visibility", ids["shared.md"], "shared").code == 0
    users = {"reader": "ada", "writer": "ada", "admin": "ada", "owner": "local"}
    tokens = {
        name: token(home, name, "--user", user, "--role", name if name != "owner" else "reader")
        for name, user in users.items()
    }
    with serving(home, "--log", "json") as server:
        yield Gated(
            home=home,
            server=server,
            tokens=tokens,
            hidden=ids["hidden.md"],
            shared=ids["shared.md"],
        )


def knock(server: Running, method: str, path: str, secret: str | None, **headers: str) -> Got:
    """Ask a route with what it may be asked with, whatever comes of it."""
    path = path.replace("{id}", "d0000000000000000000").replace("{name}", "app.js")
    if path == "/v1/events":
        # Without an id it is for admins, and goes on.
        path += "?doc=d0000000000000000000"
    if method == "POST":
        return server.post(path, {}, secret, **headers)
    return server.get(path, secret, **headers)


def test_no_route_is_open_but_health_and_the_page(gated: Gated) -> None:
    """Without a token, with a wrong one or none of ours every route says 401, and nothing else."""
    open_ones = []
    for route in all_routes():
        for headers in (
            {},
            {"authorization": "Bearer kb_" + "A" * 43},
            {"authorization": f"Basic {gated.tokens['admin']}"},
            {"authorization": f"Bearer {gated.tokens['admin']}x"},
            {"authorization": "Bearer"},
        ):
            got = knock(gated.server, route.method, route.path, None, **headers)
            if route.role is None:
                assert got.status == (404 if route.path == "/open/{link}" else 200)
                open_ones.append(route.path)
                continue
            assert got.status == 401, route.path
            assert got.headers["www-authenticate"] == 'Bearer realm="kb"'
            assert got.json["code"] == "unauthorized"
    assert set(open_ones) == {
        *("/health/live", "/health/ready", "/", "/page/{name}", "/open/{link}")
    }
    assert gated.server.get("/nothing").status == 401


@pytest.mark.parametrize("role", ["reader", "writer", "admin"])
def test_a_role_opens_what_it_may(gated: Gated, role: str) -> None:
    """Each route answers 403 to a lesser role, and only to that."""
    for route in all_routes():
        got = knock(gated.server, route.method, route.path, gated.tokens[role])
        # A link into the page is for the operator, whose token is none of these.
        refused = route.path == "/v1/links"
        refused |= route.role is not None and not role_allows(role, route.role)
        assert (got.status == 403) == refused, (route.path, got.status)
        assert got.status not in (401, 500, 503)


def test_what_is_hidden_is_as_what_never_was(gated: Gated) -> None:
    """A doc that the token's user does not see is answered byte for byte as one that is not."""
    secret = gated.tokens["reader"]
    missing = "d" + "0" * (len(gated.hidden) - 1)

    def body(path: str) -> bytes:
        got = gated.server.get(path, secret)
        assert got.status == 404
        problem = got.json
        assert problem.pop("request_id")
        return json.dumps(problem).encode()

    for path in ("/v1/docs/{}", "/v1/similar/{}"):
        hidden = body(path.format(gated.hidden)).replace(gated.hidden.encode(), b"")
        assert hidden == body(path.format(missing)).replace(missing.encode(), b"")
    assert gated.server.get(f"/v1/docs/{gated.hidden}", gated.tokens["owner"]).status == 200
    assert gated.server.get(f"/v1/docs/{gated.shared}", secret).status == 200
    listed = gated.server.get("/v1/docs", secret).json
    assert [one["doc_id"] for one in listed["docs"]] == [gated.shared]
    assert listed["total"] == 1
    assert gated.server.get("/v1/search?q=oak&mode=lexical", secret).json["hits"] == []
    raw = gated.server.get("/content?query=oak&mode=raw", secret).json
    assert not any("hidden" in one["path"] for one in raw)


def test_who_asks_is_never_in_the_request(gated: Gated) -> None:
    """No field and no parameter changes whose docs are seen."""
    secret = gated.tokens["reader"]
    assert gated.server.get("/v1/docs?user=local", secret).status == 422
    body = {"scope": {"user": "local", "operator": True}}
    assert gated.server.post("/v1/tools/kb_list_docs", body, secret).status == 422


def test_notes_are_as_their_docs(gated: Gated) -> None:
    """A note is its writer's until it is shown to others; its path is no secret way to it."""
    server, writer, owner = gated.server, gated.tokens["writer"], gated.tokens["owner"]
    job = server.post("/content", {"content": "# Rope\n\nHemp.", "hint": "rig"}, writer).json
    at = f"/jobs/{job['job_id']}"
    mine = until(lambda: (one := server.get(at, writer).json)["status"] == "done" and one)
    assert mine["path"] == "from-ada/rig/rope.md"
    address = "/content?path=from-ada/rig/rope.md"
    assert server.get(address, writer).json["content"] == "# Rope\n\nHemp.\n"
    twisted = ("from-ada//rig/rope.md", "./from-ada/rig/rope.md", "INDEX.md", ".git/config", "/etc")
    for path in twisted:
        assert server.get(f"/content?path={path}", writer).status == 404, path
    assert server.get(address, owner).status == 404
    doc = gated.home.ids()["rope.md"]
    assert gated.home.run("visibility", doc, "shared").code == 0
    assert server.get(address, owner).status == 200


def test_a_reader_is_guided_and_leaves_no_signal(gated: Gated) -> None:
    """Guidance is a read; a signal wants a writer, and is then kept."""
    signal = {"action": "stuck", "reason": "no way on"}
    assert gated.server.post("/v1/tools/help", signal, gated.tokens["reader"]).status == 403
    asked = {"action": "guidance"}
    assert gated.server.post("/v1/tools/help", asked, gated.tokens["reader"]).status == 422
    assert gated.server.post("/v1/tools/help", signal, gated.tokens["writer"]).status == 200
    assert "no way on" in gated.home.run("signals").out


def test_a_stranger_among_hosts_is_turned_away(gated: Gated) -> None:
    """Only names of this machine, the bound one and those of the settings are answered to."""
    secret = gated.tokens["reader"]
    hosts = {
        "localhost": 200,
        "localhost:7777": 200,
        "127.0.0.1": 200,
        "[::1]:80": 200,
        "kb.example": 200,
        "KB.example:443": 200,
        "evil.example": 421,
        "localhost.evil.example": 421,
        "127.0.0.1.evil.example": 421,
        "evil.example:7777": 421,
        "127.0.0.1:80@evil.example": 421,
        "127.0.0.1@evil.example": 421,
        "[::1]evil.example": 421,
        "[::1]:80@evil.example": 421,
        "[::1": 421,
        "localhost:": 421,
        "localhost:x": 421,
        "http://localhost": 421,
        "evil://localhost": 421,
        "localhost/evil": 421,
        "": 421,
    }
    got = {host: gated.server.get("/v1/docs", secret, host=host).status for host in hosts}
    assert got == hosts
    assert gated.server.get("/health/live", host="evil.example").status == 421


def test_an_absolute_target_is_answered(gated: Gated) -> None:
    """As proxies send it: its host counts, whatever the header says."""
    secret = gated.tokens["reader"]
    targets = {
        "http://localhost/v1/docs": 200,
        "HTTP://kb.example:443/v1/docs?limit=1": 200,
        "https://localhost/health/live": 200,
        "http://localhost": 200,
        "http://evil.example/v1/docs": 421,
        "http://localhost@evil.example/v1/docs": 421,
        "http:///v1/docs": 421,
        "ftp://localhost/v1/docs": 404,
    }
    for host in ("localhost", "evil.example"):
        got = {at: gated.server.get(at, secret, host=host).status for at in targets}
        assert got == {
            **targets,
            **({} if host == "localhost" else {"ftp://localhost/v1/docs": 421}),
        }


def test_a_page_of_another_site_is_turned_away(gated: Gated) -> None:
    """A page may ask that came from here or is named by the settings; only the latter by CORS."""
    secret, port = gated.tokens["writer"], gated.server.port
    here = f"http://127.0.0.1:{port}"
    for origin, status in {
        here: 200,
        "https://page.example": 200,
        "https://evil.example": 403,
        "http://localhost:3000": 403,
        "null": 403,
        f"http://127.0.0.1:{port}.evil.example": 403,
        f"ftp://127.0.0.1:{port}": 403,
        f"evil://127.0.0.1:{port}": 403,
        f"://127.0.0.1:{port}": 403,
        f"http://evil@127.0.0.1:{port}": 403,
    }.items():
        got = gated.server.get("/v1/docs", secret, origin=origin)
        assert got.status == status, origin
        granted = got.headers.get("access-control-allow-origin")
        assert granted == (origin if origin == "https://page.example" else None)
    assert gated.server.get("/v1/docs", secret, sec_fetch_site="cross-site").status == 403
    link = {"sec_fetch_site": "cross-site", "sec_fetch_dest": "document"}
    assert gated.server.get("/v1/docs", secret, **link).status == 403
    assert gated.server.get("/", **link).status == 200
    assert gated.server.get("/", **link | {"sec_fetch_dest": "iframe"}).status == 403
    before = gated.server.ask("OPTIONS", "/v1/docs", origin="https://page.example")
    assert (before.status, before.headers["access-control-allow-methods"]) == (204, "GET, POST")
    assert gated.server.ask("OPTIONS", "/v1/docs", origin="https://evil.example").status == 403
    assert gated.server.ask("OPTIONS", "/v1/docs", token=secret).status == 405


def test_tokens_come_and_go(tmp_path: Path) -> None:
    """A token counts from the next request on, and no longer from when it is removed."""
    home = Home(tmp_path / "home")
    with serving(home) as server:
        assert server.get("/v1/stats").json["home"] == str(home.root)
        secret = token(home, "me", "--role", "admin")
        assert server.get("/v1/stats").status == 401
        assert server.get("/v1/stats", secret).json["home"] == ""
        assert home.run("token", "ls").out == "me  admin  local\n"
        row = home.run("token", "ls", "--json").json["tokens"][0]
        assert (row["name"], row["user"], row["role"]) == ("me", "local", "admin")
        assert home.run("token", "rm", "me").code == 0
        assert server.get("/v1/stats", secret).status == 200
    assert home.run("token", "rm", "me").code == 4
    assert home.run("token", "add", "no way").code == 2
    assert home.run("token", "add", "me", "--user", " ").code == 2
    token(home, "me")
    taken = home.run("token", "add", "me")
    assert (taken.code, taken.out) == (2, "")


def test_a_token_is_kept_as_a_hash(tmp_path: Path) -> None:
    """No file of the home has the secret."""
    home = Home(tmp_path / "home")
    secret = token(home, "me").encode()
    files = [one for one in home.root.rglob("*") if one.is_file()]
    assert files
    assert not any(secret in one.read_bytes() for one in files)


def test_a_place_that_others_reach_wants_a_token(tmp_path: Path) -> None:
    """Without one the command is wrong; with one it serves, to those who show it."""
    home = Home(tmp_path / "home")
    refused = home.run("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 2
    assert "kb token add" in refused.err
    project = tmp_path / "work/.kb"
    project.mkdir(parents=True)
    (project / "kb.toml").write_text('[serve]\nhost = "0.0.0.0"\nhosts = ["evil.example"]\n')
    with serving(Home(project)) as server:
        assert server.get("/v1/stats", host="evil.example").status == 421
        _, err = server.stop()
    assert "serve.host, serve.hosts comes with the project, and counts only after" in err


def test_the_log_tells_nothing_of_what_was_asked(tmp_path: Path) -> None:
    """A line of JSON to a request: no token, no query, no body, no id, and no path of a note."""
    home = Home(tmp_path / "home")
    secret = token(home, "me", "--role", "admin")
    words = SECRET.replace(" ", "+")
    with serving(home, "--log", "json") as server:
        server.get(f"/v1/search?q={words}", secret)
        server.get(f"/v1/docs/d0000?{words}", secret)
        server.get(f"/content?path={words}", secret)
        server.get(f"/{words}", secret + "x")
        server.post("/content", {"content": SECRET, "hint": SECRET}, secret)
        server.post("/v1/tools/kb_search", {"query": SECRET, words: 1}, secret)
        code, err = server.stop()
    assert code == 0
    rows = [json.loads(line) for line in err.splitlines()]
    assert [row["status"] for row in rows] == [200, 422, 404, 401, 202, 422]
    assert rows[0]["route"] == "/v1/search"
    assert rows[0]["user"] == "local"
    assert re.fullmatch(r"[0-9a-f]{16}", rows[0]["request_id"])
    for part in ("canary", secret, secret[3:], "d0000"):
        assert part not in err
