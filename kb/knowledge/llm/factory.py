"""Make the provider that the settings name, of kb itself or of a plugin."""

from collections.abc import Callable, Mapping
from typing import Final

from kb.errors import ConfigError
from kb.intake.model_server.address import checked_url, key_in, ollama_location
from kb.intake.model_server.peer import ApiKey, Peer, one_line
from kb.intake.model_server.timing import Timing
from kb.knowledge.llm.dialect import Dialect
from kb.knowledge.llm.protocol import NoProvider, Provider
from kb.model.config import LlmSettings

ANTHROPIC_URL: Final = "https://api.anthropic.com"
OPENAI_URL: Final = "https://api.openai.com/v1"
_URL_PLACE: Final = "llm.base_url"


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

            location = ollama_location(settings.base_url, _URL_PLACE, env)
            return _provider(settings, location, None, Ollama, timing)
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
    url = checked_url(*location, has_key=key is not None)
    peer = Peer(f"{settings.provider} ({one_line(url)})", key)
    return HttpProvider(settings, url, peer, dialect(peer), timing or Timing())


def _key(env: Mapping[str, str], name: str, settings: LlmSettings) -> ApiKey | None:
    key = key_in(env, name)
    if key is None and not settings.base_url:
        detail = f"not set; llm.provider = {settings.provider} needs a key in the environment"
        raise ConfigError(detail, place=name)
    return key
