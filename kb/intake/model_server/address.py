"""Where is a model's server, and with which key may it be asked? Checked before it is asked."""

import re
from collections.abc import Mapping
from typing import Final

from kb.errors import ConfigError
from kb.intake.model_server.peer import ApiKey, one_line

OLLAMA_URL: Final = "http://127.0.0.1:11434"
_OLLAMA_PORT: Final = 11_434
_KEY: Final = r"[!-~]{1,4096}"
_URL: Final = r"(?i:https?)://[!-~]+"


def key_in(env: Mapping[str, str], name: str) -> ApiKey | None:
    """The key that a variable of the environment holds, if any. Raises ConfigError, without it."""
    value = env.get(name, "").strip(" ")
    if not value:
        return None
    if re.fullmatch(_KEY, value) is None:
        detail = "not a key: it has white space, control or non-ASCII characters, or is too long"
        raise ConfigError(detail, place=name)
    return ApiKey(value)


def ollama_location(base_url: str, place: str, env: Mapping[str, str]) -> tuple[str, str]:
    """Where Ollama is, and the setting that says so: `base_url`, else OLLAMA_HOST or the usual."""
    if not base_url and env.get("OLLAMA_HOST"):
        return _ollama_url(env["OLLAMA_HOST"]), "OLLAMA_HOST"
    return base_url or OLLAMA_URL, place


def checked_url(url: str, place: str, *, has_key: bool) -> str:
    """The base URL without its last slashes.

    Raises ConfigError for a URL that cannot be used, and where a key would go over the network in
    the clear.
    """
    import httpx

    if "@" in url:
        # The URL is not shown: the part before the @ may be a password.
        raise ConfigError("kb uses no URL with a user or password in it", place=place)
    if re.fullmatch(_URL, url) is None or "?" in url or "#" in url or "\\" in url:
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
