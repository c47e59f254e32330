"""A language model that a plugin asks: loaded, and held to what every provider promises."""

from collections.abc import Iterator, Mapping

from kb.errors import BadAnswer, ConfigError, KbError, ModelUnavailable, PluginFailed
from kb.knowledge.llm.protocol import Provider
from kb.model.config import LlmSettings
from kb.model.config.sections import LLM_PROVIDERS
from kb.model.entry_points import failed, installed, load_maker


def make_by_plugin(settings: LlmSettings, env: Mapping[str, str]) -> Provider:
    """The provider of the plugin that the settings name. Raises ConfigError."""
    plugins = {plugin.name: plugin for plugin in installed("kb.llm")}
    plugin = plugins.get(settings.provider)
    if plugin is None:
        names = ", ".join((*LLM_PROVIDERS, *plugins))
        detail = f"{settings.provider} is none of {names}; install its plugin, or change it"
        raise ConfigError(detail, place="llm.provider")
    try:
        return _PluginProvider(load_maker(plugin)(settings, env), plugin.name)
    except PluginFailed as error:
        raise ConfigError(str(error), place="llm.provider") from error
    except KbError:
        raise
    except Exception as error:
        cause = f"cannot be set up ({type(error).__name__}: {error})"
        raise ConfigError(str(failed(plugin, cause)), place="llm.provider") from error


class _PluginProvider:
    """Passes on what a plugin's provider says; whatever else it raises is ModelUnavailable."""

    def __init__(self, provider: Provider, plugin: str) -> None:
        self._provider = provider
        self.name = str(provider.name) or plugin

    def complete(self, system: str, user: str) -> str:
        """As `Provider.complete`."""
        try:
            text = self._provider.complete(system, user)
        except KbError:
            raise
        except Exception as error:
            raise self._unavailable(error) from error
        if not isinstance(text, str) or not text.strip():
            raise BadAnswer("the answer is empty", place=self.name)
        return text

    def stream(self, system: str, user: str) -> Iterator[str]:
        """As `Provider.stream`."""
        try:
            for part in self._provider.stream(system, user):
                if part:
                    yield part
        except KbError:
            raise
        except Exception as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> ModelUnavailable:
        detail = f"the plugin failed ({type(error).__name__}: {error})"
        return ModelUnavailable(detail, place=self.name)
