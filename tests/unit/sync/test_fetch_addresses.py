"""Which addresses are fetched from, and that nothing else is connected to."""

import contextlib
import ipaddress
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import HOST, Answer, LoopbackServer, moved, serving

from kb.errors import ConfigError, Refused, Transient
from kb.intake.sync.address import AllowList, is_public
from kb.intake.sync.fetch import Fetcher, FetchSettings
from kb.intake.sync.weburl import join_url, normalize_url, parse_url, printable_url
from kb.model.clock import SystemClock

PUBLIC = "93.184.215.14"
OTHER_PUBLIC = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"


class Connections:
    """Records where connections are made to, and leads all of them to one loopback port."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.leads_to: int | None = None
        self._connect = socket.create_connection

    def __call__(self, address, timeout=None, **kwargs):
        self.made.append(address[0])
        port = self.leads_to or address[1]
        return self._connect((HOST, port), timeout, **kwargs)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    made = Connections()
    monkeypatch.setattr(socket, "create_connection", made)
    return made


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with serving() as running:
        running.routes["/"] = Answer(b"a page")
        yield running


def never(host: str, port: int) -> tuple[str, ...]:
    raise AssertionError(f"{host} was looked up")


def fetcher(*allow: str, resolve=never, **settings) -> Fetcher:
    return Fetcher(FetchSettings(allow=allow, **settings), SystemClock(), resolve)


def refusal(url: str, *allow: str, **kwargs) -> str:
    with pytest.raises(Refused) as caught:
        fetcher(*allow, **kwargs).get(url)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1\\@example.org",
        "http://example.org\\@127.0.0.1/",
        "http://user:pw@127.0.0.1/",
        "http://@127.0.0.1/",
        "http://example.org@127.0.0.1/",
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "gopher://127.0.0.1/",
        "data:text/plain,hello",
        "javascript:alert(1)",
        "127.0.0.1/",
        "//127.0.0.1/",
        "http:/127.0.0.1/",
        "http:127.0.0.1/",
        "http:///etc/passwd",
        "http://",
        "",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:65536/",
        "http://127.0.0.1:+80/",
        "http://127.0.0.1:８０/",
        "http://127.0.0.1:80:80/",
        "http://127.0.0.1:http/",
        "http://127.0.0.1/\r\nHost: example.org",
        "http://127.0.0.1/%0d%0a\n",
        "http://127.0.0.1\t/",
        " http://127.0.0.1/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/\x00",
        "http://127.0.0.1/\u2028",
        "http://127.0.0.1\u200b/",
        "http://127.0.0.1/\ud800",
        "http://127.0.0.1%00.example.org/",
        "http://127.0.0.%31/",
        "http://0/",
        "http://127.1/",
        "http://127.0.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0x/",
        "http://017700000001/",
        "http://0177.0.0.1/",
        "http://127.0.0.1.1/",
        "http://[::1%25lo]/",
        "http://[::1%lo]/",
        "http://[::1/",
        "http://::1/",
        "http://[v1.a]/",
        "http://a..b/",
        "http://-/",
        f"http://{'a' * 64}.example/",
        f"http://{'a.' * 127}example/",
        "http://127.0.0.1/" + "a" * 8_192,
    ],
)
def test_addresses_that_could_be_misread_are_refused(url: str, connections: Connections) -> None:
    """Whatever has a second reading is refused even where its host is allowed; nothing connects."""
    refusal(url, "0.0.0.0/0", "::/0")
    assert connections.made == []


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "127。0。0。1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "198.18.0.1",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:8.8.8.8]",
        "[::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::1]",
        "[2002:7f00:1::]",
        "[2002:a9fe:a9fe::1]",
        "[2001:0:7f00:1::]",
        "[2001:db8::1]",
        "[3fff::1]",
        "[fe80::1]",
        "[fec0::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[ff0e::1]",
    ],
)
def test_addresses_that_are_not_public_are_refused(host: str, connections: Connections) -> None:
    """Loopback, private, link-local and odd nets are refused in every spelling, unlooked-up."""
    assert "not a public address" in refusal(f"http://{host}/")
    assert connections.made == []


@pytest.mark.parametrize(
    "text", ["8.8.8.8", PUBLIC, "2606:4700::1", "64:ff9b::808:808", "2002:808:808::1"]
)
def test_public_addresses_are_public(text: str) -> None:
    """Addresses of the internet pass, also behind NAT64 and 6to4."""
    assert is_public(ipaddress.ip_address(text))


def test_a_mapped_address_is_refused_though_its_ipv4_is_allowed(connections: Connections) -> None:
    """An entry of `allow` names the addresses that it says, in no disguise."""
    assert "not a public" in refusal("http://[::ffff:127.0.0.1]/", "127.0.0.1")
    assert connections.made == []


@pytest.mark.parametrize("private", ["10.0.0.5", "::1", "fe80::1%eth0", "::ffff:10.0.0.5"])
def test_a_name_with_one_private_address_is_refused(private: str, connections: Connections) -> None:
    """One address that is not public spoils all others, whatever their order."""
    for addresses in ((PUBLIC, private), (private, PUBLIC)):
        said = refusal("http://mixed.example/", resolve=lambda _host, _port, a=addresses: a)
        assert said.startswith("http://mixed.example/: mixed.example is at ")
    assert connections.made == []


def test_a_name_is_looked_up_once(connections: Connections, server: LoopbackServer) -> None:
    """A name server that changes its answer is not asked again: the checked address is used."""
    connections.leads_to = server.port
    answers = iter(([PUBLIC], [HOST], [HOST]))
    looked_up: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return next(answers)

    fetched = fetcher(resolve=rebinding).get("http://Rebinding.Example/")
    assert fetched.data == b"a page"
    assert looked_up == ["rebinding.example"]
    assert connections.made == [PUBLIC]
    assert server.requests[0].headers["Host"] == "rebinding.example"


def test_the_next_address_is_tried_where_one_does_not_answer(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several checked addresses the first that answers is used."""
    tried: list[str] = []
    connect = socket.create_connection

    def first_fails(address, timeout=None, **kwargs):
        tried.append(address[0])
        if len(tried) == 1:
            raise ConnectionRefusedError
        return connect((HOST, server.port), timeout, **kwargs)

    monkeypatch.setattr(socket, "create_connection", first_fails)
    two = fetcher(resolve=lambda _host, _port: (OTHER_PUBLIC, PUBLIC))
    assert two.get("http://two.example/").data == b"a page"
    assert tried == [OTHER_PUBLIC, PUBLIC]


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "//192.168.0.1/x",
        "file:///etc/passwd",
        "http://127.0.0.1\\@example.org/",
        "http://user:pw@example.org/",
        "http://2130706433/",
        "http://[",
        "gopher://x/",
    ],
)
def test_a_redirect_is_checked_like_any_address(
    target: str, connections: Connections, server: LoopbackServer
) -> None:
    """Where a redirect leads is refused by the same rules; only its own page was asked for."""
    server.routes["/away"] = moved(target)
    said = refusal(server.url("/away"), HOST)
    assert said.startswith(server.url("/away") + ": ")
    assert "redirects to" in said or "redirected to" in said
    assert server.paths() == ["/away"]
    assert connections.made == [HOST]


def test_a_public_page_cannot_redirect_to_loopback(
    connections: Connections, server: LoopbackServer
) -> None:
    """With nothing allowed, a redirect to this machine fetches nothing from it."""
    connections.leads_to = server.port
    server.routes["/away"] = moved(server.url("/"))
    public = fetcher(resolve=lambda _host, _port: (PUBLIC,))
    with pytest.raises(Refused, match="redirected to http://127"):
        public.get("http://page.example/away")
    assert server.paths() == ["/away"]
    assert connections.made == [PUBLIC]


def test_a_redirect_is_looked_up_again(connections: Connections, server: LoopbackServer) -> None:
    """A later hop to the same name is checked with its own answer."""
    connections.leads_to = server.port
    server.routes["/away"] = moved("/")
    answers = iter(([PUBLIC], ["127.0.0.1"]))
    with pytest.raises(Refused, match=r"is at 127\.0\.0\.1"):
        fetcher(resolve=lambda _host, _port: next(answers)).get("http://page.example/away")
    assert server.paths() == ["/away"]


def test_loopback_is_refused_unless_allowed(server: LoopbackServer) -> None:
    """The server sees no connection from a fetcher to which nothing is allowed."""
    refusal(server.url("/"))
    assert server.connections == 0


@pytest.mark.parametrize(
    "entry", ["127.0.0.1", "127.0.0.0/8", "127.0.0.1:{port}", "127.0.0.0/8:{port}"]
)
def test_the_settings_can_allow_addresses(entry: str, server: LoopbackServer) -> None:
    """An address or network in `allow` is fetched from, at its port or at any."""
    allowed = fetcher(entry.format(port=server.port))
    assert allowed.get(server.url("/")).data == b"a page"


@pytest.mark.parametrize("entry", ["localhost", "LOCALHOST:{port}"])
def test_the_settings_can_allow_a_host(entry: str, server: LoopbackServer) -> None:
    """A host in `allow` is fetched from under its name, and not under its address."""
    entry = entry.format(port=server.port)
    allowed = fetcher(entry, resolve=lambda _host, _port: (HOST,))
    assert allowed.get(server.url("/", "localhost")).data == b"a page"
    refusal(server.url("/"), entry)


def test_an_allowed_port_is_the_only_one(server: LoopbackServer) -> None:
    """An entry with a port does not open the others."""
    refusal(server.url("/"), "127.0.0.1:1", "localhost:1")


@pytest.mark.parametrize(
    "entry", ["", "10.0.0.1/8", "127.1", "a b", "h:0", "h:70000", "http://h/", "[::1", "1.2.3.4.5"]
)
def test_an_allow_entry_that_cannot_be_read_is_an_error(entry: str) -> None:
    """What `allow` cannot mean is said at the start."""
    with pytest.raises(ConfigError, match=r"fetch\.allow"):
        AllowList([entry])


def test_allowed_ipv6_addresses_are_understood() -> None:
    """IPv6 entries stand bare, in brackets, as networks and with a port."""
    allowed = AllowList(["::1", "[fc00::1]:8080", "fe80::/10"])
    for url, ip, has in (
        ("http://[::1]/", "::1", True),
        ("http://[fc00::1]:8080/", "fc00::1", True),
        ("http://[fc00::1]/", "fc00::1", False),
        ("http://[fe80::2]/", "fe80::2", True),
    ):
        assert allowed.has(parse_url(url), ipaddress.ip_address(ip)) == has


def test_an_unknown_host_is_transient(connections: Connections) -> None:
    """A name that cannot be looked up may be found later."""

    def unknown(host: str, port: int) -> tuple[str, ...]:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    for resolve in (unknown, lambda _host, _port: ()):
        with pytest.raises(Transient, match=r"nowhere\.example"):
            fetcher(resolve=resolve).get("http://nowhere.example/")
    assert connections.made == []


def test_the_system_resolver_is_asked_without_network() -> None:
    """The real resolver turns `localhost` into loopback, which is refused."""
    with pytest.raises(Refused, match="not a public address"):
        Fetcher(FetchSettings(), SystemClock()).get("http://localhost/")


def test_a_password_is_not_repeated() -> None:
    """The message of a refusal shows the address without its password, in one line."""
    said = refusal("http://user:secret@example.org/")
    assert "secret" not in said
    assert printable_url("http://h/\r\n\x1b[31m") == "http://h/\\r\\n\\x1b[31m"


@given(st.text(max_size=60), st.text(alphabet="htp:/@[]%.#?\\0127fx \n-é。", max_size=40))
def test_any_text_is_an_address_or_refused(free: str, nasty: str) -> None:
    """Reading an address never fails in another way, and what is read is read the same again."""
    for text in (free, f"http://{free}", f"http://{nasty}", f"http://h/{nasty}"):
        with contextlib.suppress(Refused):
            url = parse_url(text)
            assert parse_url(url.text) == url
            assert normalize_url(parse_url(normalize_url(url))) == normalize_url(url)
    with contextlib.suppress(Refused):
        join_url(parse_url("https://h/a"), nasty)
