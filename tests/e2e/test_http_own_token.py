"""`kb serve` wants a token of everybody, and its operator has one without asking."""

import http.server
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import KB, Home, Ran, run, surroundings
from http_server import HOST, Running, serving
from msgspec import Struct


class Own(Struct):
    """A home whose server wants a token, and where its user's own lies."""

    home: Home
    server: Running
    env: dict[str, str]
    folder: Path

    def run(self, *args: object) -> Ran:
        return self.home.run(*args, env=self.env)

    @property
    def secret(self) -> str:
        return (self.folder / "token").read_text().strip()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    root = tmp_path_factory.mktemp("own")
    env = surroundings(HOME=str(root), XDG_DATA_HOME=str(root / "data"))
    home = Home(root / "home")
    (root / "oak.md").write_text("# Oak\n\nThe keel is oak.")
    assert home.run("add", root / "oak.md", env=env).code == 0
    with serving(home, wants_token=True, env=env) as server:
        yield Own(home=home, server=server, env=env, folder=root / "data" / "kb-server")


def test_nobody_gets_in_without(own: Own) -> None:
    """Not by any address but the health and the page's own files; with the operator's all is so."""
    assert own.server.get("/v1/docs").status == 401
    assert own.server.get("/v1/docs", "kb_own_wrong").status == 401
    assert own.server.post("/content", {"content": "x"}).status == 401
    assert own.server.post("/v1/links", {}).status == 401
    for path in ("/health/live", "/health/ready", "/", "/page/app.js"):
        assert own.server.get(path).status == 200
    assert own.server.get("/v1/docs", own.secret).json["docs"][0]["title"] == "Oak"
    assert own.server.get("/v1/stats", own.secret).json["home"]


def test_it_is_kept_outside_of_homes_and_for_its_user(own: Own) -> None:
    """One file for every server, that only its user reads; `kb token own` prints it."""
    assert stat.S_IMODE((own.folder / "token").stat().st_mode) == 0o600
    assert own.run("token", "own").out.strip() == own.secret
    secret = own.secret.encode()
    assert not any(secret in one.read_bytes() for one in own.home.root.rglob("*") if one.is_file())
    other = Home(own.home.root.with_name("other"))
    with serving(other, wants_token=True, env=own.env) as second:
        assert second.get("/v1/docs", own.secret).status == 200


def test_the_command_line_shows_it_by_itself(own: Own) -> None:
    """To the server that its user started, and to no other program at any port."""
    seen: list[str | None] = []

    class Rogue(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers.get("authorization"))
            self.send_error(401)

        def log_message(self, *_: object) -> None:
            pass

    rogue = http.server.HTTPServer((HOST, 0), Rogue)
    threading.Thread(target=rogue.serve_forever, daemon=True).start()
    try:
        refused = remote(own, f"http://{HOST}:{rogue.server_port}", "search", "oak")
    finally:
        rogue.shutdown()
        rogue.server_close()
    assert refused.code != 0
    assert seen == [None]
    for name in (HOST, "localhost"):
        ran = remote(own, f"http://{name}:{own.server.port}", "search", "oak", "--json")
        assert (ran.code, ran.err) == (0, "")
        assert ran.json["hits"][0]["title"] == "Oak"


def remote(own: Own, address: str, *args: str) -> Ran:
    """A command that asks a server, and no home."""
    return run([KB, "--server", address, *args], env=own.env)


def test_a_link_opens_the_page_once(own: Own) -> None:
    """It becomes a cookie that scripts cannot read and other sites cannot send."""
    address = f"http://{HOST}:{own.server.port}"
    made = own.run("token", "link", "--port", own.server.port)
    assert made.err == ""
    link = made.out.strip()
    assert link.startswith(f"{address}/open/")
    path = link.removeprefix(address)
    opened = own.server.get(path)
    assert (opened.status, opened.headers["location"]) == (303, "/")
    assert opened.headers["referrer-policy"] == "no-referrer"
    cookie, *marks = opened.headers["set-cookie"].split("; ")
    assert set(marks) == {"Path=/", "HttpOnly", "SameSite=Strict"}
    assert cookie.startswith(f"kb-{own.server.port}=")
    assert own.server.get("/v1/docs", cookie=cookie).status == 200
    assert own.server.get("/v1/docs", cookie=cookie, sec_fetch_site="same-origin").status == 200
    # A page of another port of this machine sends it as well.
    for site in ("same-site", "cross-site"):
        assert own.server.get("/v1/docs", cookie=cookie, sec_fetch_site=site).status in (401, 403)
    assert own.server.get("/v1/docs", "kb_own_wrong", cookie=cookie).status == 401
    again = own.server.get(path)
    assert (again.status, again.json["code"]) == (404, "link_used")
    assert "set-cookie" not in again.headers


def test_without_a_token_it_says_what_that_means(own: Own) -> None:
    """In the help of the flag."""
    said = " ".join(own.run("serve", "--help").out.split())
    assert "--no-token" in said
    assert "any user and any program" in said
