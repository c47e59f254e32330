"""Which provider the settings name, where it is, and which keys are used."""

from pathlib import Path
from typing import Any

import pytest
from llm_server import KEY, LlmServer, llm_serving

from kb.errors import ConfigError, KbError, NoModel
from kb.home.app import App
from kb.knowledge.llm import NoProvider, make_provider
from kb.knowledge.llm.provider import HttpProvider
from kb.model.config import LlmSettings, Settings, load

KEYS = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}


def made(provider: Any, env: dict[str, str] | None = None, **said: Any) -> HttpProvider:
    found = make_provider(
        LlmSettings(provider=provider, **{"model": "m", **said}), KEYS if env is None else env
    )
    assert isinstance(found, HttpProvider)
    return found


def place(provider: Any, env: dict[str, str] | None = None, **said: Any) -> str:
    """Who is asked, as errors name it."""
    return made(provider, env, **said)._peer.place


def wrong(provider: Any, env: dict[str, str] | None = None, **said: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        made(provider, env, **said)
    assert KEY not in str(caught.value)
    return str(caught.value)


def test_without_settings_there_is_no_model() -> None:
    """Every question says how to set one up."""
    provider = make_provider(Settings().llm, {})
    assert isinstance(provider, NoProvider)
    assert provider.name == "none"
    for ask in (provider.complete, provider.stream):
        with pytest.raises(NoModel, match=r"set llm\.provider to ollama, anthropic or openai"):
            ask("S", "U")


def test_each_provider_is_where_its_maker_says() -> None:
    """Without `base_url` the address is the provider's own."""
    assert place("ollama") == "ollama (http://127.0.0.1:11434)"
    assert place("anthropic") == "anthropic (https://api.anthropic.com)"
    assert place("openai") == "openai (https://api.openai.com/v1)"
    assert place("openai", base_url="http://localhost:8/v1/") == "openai (http://localhost:8/v1)"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("box", "http://box:11434"),
        ("10.0.0.7:80", "http://10.0.0.7:80"),
        (":8080", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:1", "http://127.0.0.1:1"),
        ("[::1]:5", "http://[::1]:5"),
        ("[::1]", "http://[::1]:11434"),
        ("[::]:5", "http://127.0.0.1:5"),
        ("https://box/ollama/", "https://box/ollama"),
    ],
)
def test_ollama_host_says_where_ollama_is(host: str, url: str) -> None:
    """The environment's word, in the forms that Ollama knows; the setting beats it."""
    assert place("ollama", {"OLLAMA_HOST": host}) == f"ollama ({url})"
    assert place("ollama", {"OLLAMA_HOST": host}, base_url="http://x") == "ollama (http://x)"


def test_ollama_host_is_named_where_it_is_wrong() -> None:
    """The error leads to the variable, not to a setting."""
    assert wrong("ollama", {"OLLAMA_HOST": "ftp://x"}).startswith("OLLAMA_HOST: ftp://x is no")


@pytest.mark.parametrize("provider", ["ollama", "anthropic", "openai"])
def test_a_model_must_be_named(provider: str) -> None:
    """There is no default: models come and go."""
    assert wrong(provider, model=" ") == f"llm.model: empty; name a model that {provider} has"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x", "x", "http://", "https:///v1", "http://x:0", "http://x:99999", "http://x?y",
        "http://x#y", "http://a b", "http://x\n", "http://x\\y", "file:///x", "http://:80",
        "https://\u0661",
    ],
)  # fmt: skip
def test_what_is_no_url_is_refused(url: str) -> None:
    """Only http and https with a host, and nothing behind the path."""
    assert wrong("ollama", base_url=url).startswith("llm.base_url: ")


def test_a_password_in_a_url_is_refused_and_not_shown() -> None:
    """Logins are no part of an address, and an error does not repeat them."""
    assert "PASSWORD" not in wrong("ollama", base_url="https://me:PASSWORD@x/")


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_key_does_not_go_over_the_network_in_the_clear(provider: str) -> None:
    """Plain http with a key leads to this machine only."""
    for host in ("127.0.0.1:1", "127.9.9.9", "[::1]:1", "localhost", "LOCALHOST:5"):
        assert host in place(provider, base_url=f"http://{host}")
    for host in ("10.0.0.1", "example.com", "localhost.example.com", "0.0.0.0", "127.0.0.1.nip.io"):
        assert "would carry the key unencrypted" in wrong(provider, base_url=f"http://{host}")
        assert host in place(provider, base_url=f"https://{host}")
        assert host in place(provider, {}, base_url=f"HTTP://{host}")


@pytest.mark.parametrize(
    ("provider", "name"), [("anthropic", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY")]
)
def test_the_makers_own_server_needs_a_key(provider: str, name: str) -> None:
    """Each provider has its variable; the other one's does not count."""
    others = {key: value for key, value in KEYS.items() if key != name}
    for env in ({}, others, {name: ""}, {name: "  "}):
        assert wrong(provider, env).startswith(f"{name}: not set; llm.provider = {provider}")


@pytest.mark.parametrize("tail", ["\n", "\r\nX: y", "\t", "\x00", "é", " z", "\x7f", "x" * 5_000])
def test_a_key_that_could_not_be_sent_is_refused(tail: str) -> None:
    """Newlines, control characters and other scripts: named as wrong, and not shown."""
    for provider, name in (("anthropic", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY")):
        assert wrong(provider, {name: KEY + tail}).startswith(f"{name}: not a key")


def test_a_server_of_ones_own_needs_no_key() -> None:
    """Without a key no header for it is sent."""
    for api, header in (("anthropic", "x-api-key"), ("openai", "authorization")):
        with llm_serving(api) as server:
            server.script = [server.says("ok")]
            own = made(api, {}, base_url=server.base_url)
            assert own.complete("S", "U") == "ok"
            assert server.requests[0].headers[header] is None


def test_the_key_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment says later changes nothing."""
    with llm_serving("openai") as server:
        env = {"OPENAI_API_KEY": KEY}
        provider = made("openai", env, base_url=server.base_url)
        env["OPENAI_API_KEY"] = "another"
        server.script = [server.says("ok")]
        provider.complete("S", "U")
        assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "override",
    ["llm.provider=a b", "llm.tries=0", "llm.tries=11", "llm.timeout_s=0", "llm.key=x"],
)
def test_settings_out_of_range_are_refused(override: str) -> None:
    """Unknown providers, no tries, and keys in the settings."""
    with pytest.raises(ConfigError):
        load([], [override], env={})


def asked_of_app(server: LlmServer, home: Path, **env: str) -> str:
    cfg = [f"llm.base_url={server.base_url}", f"llm.provider={server.api}", "llm.model=m"]
    with App.open(home, load([], cfg, env=env)) as app:
        return app.llm.complete("S", "U")


def test_an_open_home_has_the_model_of_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`App.llm` asks what the settings name, with the key of the environment."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with llm_serving("anthropic") as server:
        server.script = [server.says("from the model")]
        assert asked_of_app(server, tmp_path / "home") == "from the model"
        assert server.requests[0].headers["x-api-key"] == KEY
    with App.open(tmp_path / "home", Settings()) as app, pytest.raises(KbError) as caught:
        app.llm.complete("S", "U")
    assert type(caught.value) is NoModel
    assert not [
        file
        for file in (tmp_path / "home").rglob("*")
        if file.is_file() and KEY.encode() in file.read_bytes()
    ]
