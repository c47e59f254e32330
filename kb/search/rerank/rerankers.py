"""Which reranker do the settings name? kb's own kinds, and those of plugins."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from kb.errors import KbError, ModelMissing, PluginFailed, RerankError
from kb.model.config import RerankSettings
from kb.model.entry_points import InstalledPlugin, failed, installed, load_maker, target_of
from kb.search.rerank.scores import Reranker

MakeReranker = Callable[[RerankSettings, int], Reranker]
"""Makes and loads the reranker that settings name; the number is of threads, and 0 means all
cores."""
BUILT_IN: Final[Mapping[str, str]] = {
    "onnx": "kb.search.rerank.onnx_pairs:make",
    "sentence-transformers": "kb.search.rerank.st_pairs:make",
}
"""What makes the rerankers of each kind. A plugin of such a name is not used."""


def make_reranker(settings: RerankSettings, threads: int = 0) -> Reranker:
    """The reranker that settings name, loaded.

    Raises ModelMissing where there is no such model, the extra that runs it is not installed, or
    the plugin that makes it fails.
    """
    target = BUILT_IN.get(settings.kind)
    if target is not None:
        return cast("MakeReranker", target_of(target))(settings, threads)
    plugins = {plugin.name: plugin for plugin in installed("kb.rerankers")}
    plugin = plugins.get(settings.kind)
    if plugin is None:
        names = ", ".join((*BUILT_IN, *plugins))
        detail = f"there is no reranker {settings.kind}, only {names}; install its plugin, or"
        raise ModelMissing(f"{detail} set rerank.kind to one of these")
    return _made_by(plugin, settings, threads)


def _made_by(plugin: InstalledPlugin, settings: RerankSettings, threads: int) -> Reranker:
    try:
        return _PluginReranker(plugin.name, load_maker(plugin)(settings, threads))
    except PluginFailed as error:
        raise ModelMissing(str(error)) from error
    except KbError:
        raise
    except Exception as error:
        cause = f"cannot make its model ({type(error).__name__}: {error})"
        raise ModelMissing(str(failed(plugin, cause))) from error


class _PluginReranker:
    """Passes on what a plugin's reranker gives; whatever it raises is a RerankError."""

    def __init__(self, plugin: str, reranker: Reranker) -> None:
        self._plugin = plugin
        self._reranker = reranker

    def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """As `Reranker.score`."""
        try:
            return list(self._reranker.score(query, passages))
        except KbError:
            raise
        except Exception as error:
            detail = f"the plugin {self._plugin} failed ({type(error).__name__}: {error})"
            raise RerankError(detail) from error
