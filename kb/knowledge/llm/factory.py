"""Make the provider that the settings name, of kb itself or of a plugin."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from kb.errors import ConfigError
from kb.knowledge.llm.dialect import Dialect
from kb.knowledge.llm.peer import ApiKey, Peer, one_line
from kb.knowledge.llm.protocol import NoProvider, Provider
from kb.knowledge.llm.timing import Timing
from kb.model.config import LlmSettings

OLLAMA_URL: Final = "http://127.0.0.1:11434"
ANTHROPIC_URL: Final = "https://api.anthropic.com"
OPENAI_URL: Final = "https://api.openai.com/v1"
_OLLAMA_PORT: Final = 11_434
_URL_PLACE: Final = "llm.base_url"
_KEY: Final = re.compile(r"[!-~]{1,4096}")
_URL: Final = re.compile(r"https?://[!-~]+", re.IGNORECASE)


def make_provider(
    settings: LlmSettings, env: Mapping[str, str], timing: Timing | None = None
) -> Provider:
    """The provider that the settings name; no request is sent yet.

    Keys are read from `env` here and never again: ANTHROPIC_API_KEY, OPENAI_API_KEY. Without one
    only a server of one's own, named by `base_url`, is asked. OLLAMA_HOST says where Ollama is
    unless `base_url` does. Raises ConfigError for a missing model, a URL or key that cannot be
    used, for a key that would go over the network in the clear, and for a plugin that is not there
    or fails; no message holds a key.
    """
    match settings.provider:
        case "none":
            return NoProvider()
        case "ollama":
            from kb.knowledge.llm.ollama import Ollama

            url, place = settings.base_url or OLLAMA_URL, _URL_PLACE
            if not settings.base_url and env.get("OLLAMA_HOST"):
                url, place = _ollama_url(env["OLLAMA_HOST"]), "OLLAMA_HOST"
            return _provider(settings, (url, place), None, Ollama, timing)
        case "anthropic":
            from kb.knowledge.llm.anthropic import Anthropic

            key = _key(env, "ANTHROPIC_API_KEY", settings)
            url = settings.base_url or ANTHROPIC_URL
            return _provider(settings, (url, _URL_PLACE), key, Anthropic, timing)
        case "openai":
            from kb.knowledge.llm.openai import OpenAi

            key = _key(env, "OPENAI_API_KEY", settings)
            url = settings.base_url or OPENAI_URL
            return _provider(settings, (url, _URL_PLACE), key, OpenAi, timing)
        case _:
            from kb.knowledge.llm.plugin import make_by_plugin

            return make_by_plugin(settings, env)


def _provider(
    settings: LlmSettings,
    location: tuple[str, str],
    key: ApiKey | None,
    dialect: Callable[[Peer], Dialect],
    timing: Timing | None,
) -> Provider:
    """`location` is the URL, and the setting that it comes from."""
    from kb.knowledge.llm.provider import HttpProvider

    if not settings.model.strip():
        detail = f"empty; name a model that {settings.provider} has"
        raise ConfigError(detail, place="llm.model")
    url = _checked_url(*location, has_key=key is not None)
    peer = Peer(f"{settings.provider} ({one_line(url)})", key)
    return HttpProvider(settings, url, peer, dialect(peer), timing or Timing())


def _key(env: Mapping[str, str], name: str, settings: LlmSettings) -> ApiKey | None:
    value = env.get(name, "").strip(" ")
    if not value:
        if settings.base_url:
            return None
        detail = f"not set; llm.provider = {settings.provider} needs a key in the environment"
        raise ConfigError(detail, place=name)
    if _KEY.fullmatch(value) is None:
        detail = "not a key: it has white space, control or non-ASCII characters, or is too long"
        raise ConfigError(detail, place=name)
    return ApiKey(value)


def _checked_url(url: str, place: str, *, has_key: bool) -> str:
    """The base URL without its last slashes. Raises ConfigError."""
    import httpx

    if "@" in url:
        # The URL is not shown: the part before the @ may be a password.
        raise ConfigError("kb uses no URL with a user or password in it", place=place)
    if _URL.fullmatch(url) is None or "?" in url or "#" in url or "\\" in url:
        detail = f"{one_line(url)} is not an http:// or https:// URL without query and fragment"
        raise ConfigError(detail, place=place)
    try:
        parsed = httpx.URL(url)
        usable = bool(parsed.host) and (parsed.port is None or 0 < parsed.port < 65_536)
    except httpx.InvalidURL:
        usable = False
    if not usable:
        raise ConfigError(f"{one_line(url)} has no valid host and port", place=place)
    if parsed.scheme == "http" and has_key and not _is_loopback(parsed.host):
        detail = f"{one_line(url)} would carry the key unencrypted; use https://"
        raise ConfigError(detail, place=place)
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _ollama_url(host: str) -> str:
    """OLLAMA_HOST as a URL: it may lack scheme, host and port, or name every address."""
    text = host.strip()
    if "://" in text:
        return text
    name, _, port = text.rpartition(":") if re.search(r":[0-9]*\Z", text) else (text, "", "")
    # A client cannot connect to "every address", on which a server may listen.
    name = name if name not in {"", "0.0.0.0", "[::]"} else "127.0.0.1"  # noqa: S104
    return f"http://{name}:{port or _OLLAMA_PORT}"
