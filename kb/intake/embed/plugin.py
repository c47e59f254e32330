"""An embedder that a plugin makes: loaded, and held to what every model promises."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar, cast

from kb.errors import EmbedError, KbError, ModelMissing, PluginFailed
from kb.intake.embed.protocol import Embedder, FloatMatrix, FloatVector, Span, checked
from kb.model.embedder import EmbedderChoice
from kb.model.entry_points import InstalledPlugin, failed, installed, load_maker

MakeEmbedder = Callable[[EmbedderChoice, int], Embedder]
"""Makes the model that a choice names; the number is of threads, and 0 means all cores."""
_T = TypeVar("_T")
_DIM_MAX: Final = 65_536


def make_by_plugin(choice: EmbedderChoice, threads: int, built_in: Sequence[str]) -> Embedder:
    """The embedder of the plugin that a choice names. Raises ModelMissing."""
    plugins = {plugin.name: plugin for plugin in installed("kb.embedders")}
    plugin = plugins.get(choice.kind)
    if plugin is None:
        names = ", ".join((*built_in, *plugins))
        detail = f"there is no embedder {choice.kind}, only {names}; install its plugin, or"
        raise ModelMissing(f"{detail} set embed.kind to one of these")
    try:
        return _PluginEmbedder(plugin, load_maker(plugin)(choice, threads))
    except PluginFailed as error:
        raise ModelMissing(str(error)) from error
    except KbError:
        raise
    except Exception as error:
        cause = f"cannot make its model ({type(error).__name__}: {error})"
        raise ModelMissing(str(failed(plugin, cause))) from error


class _PluginEmbedder:
    """Passes on what a plugin's embedder gives, once it is checked."""

    def __init__(self, plugin: InstalledPlugin, embedder: Embedder) -> None:
        """Raise PluginFailed where the vectors might be taken for those of another model."""
        fingerprint, dim = embedder.fingerprint, embedder.dim
        if not isinstance(fingerprint, str) or not fingerprint.startswith(f"{plugin.name}:"):
            raise failed(plugin, f"has a fingerprint that does not start with '{plugin.name}:'")
        if not isinstance(dim, int) or not 0 < dim <= _DIM_MAX:
            raise failed(plugin, f"has {dim} as the length of its vectors")
        self._embedder = embedder
        self._name = plugin.name
        self.fingerprint = fingerprint
        self.dim = dim
        self.tokens_max = embedder.tokens_max
        self.scripts = embedder.scripts

    def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        """As `Embedder.embed_documents`. Raises EmbedError for whatever goes wrong."""
        vectors = self._asked(lambda: self._embedder.embed_documents(texts))
        return checked(vectors, len(texts), self.dim)

    def embed_query(self, text: str) -> FloatVector:
        """As `Embedder.embed_query`. Raises EmbedError for whatever goes wrong."""
        vector = self._asked(lambda: self._embedder.embed_query(text))
        return cast("FloatVector", checked([vector], 1, self.dim)[0])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Embedder.count_tokens`."""
        return self._asked(lambda: self._embedder.count_tokens(texts))

    def token_spans(self, text: str) -> list[Span]:
        """As `Embedder.token_spans`."""
        return self._asked(lambda: self._embedder.token_spans(text))

    def token_spans_batch(self, texts: Sequence[str]) -> list[list[Span]]:
        """As `Embedder.token_spans_batch`."""
        return self._asked(lambda: self._embedder.token_spans_batch(texts))

    def _asked(self, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except KbError:
            raise
        except Exception as error:
            detail = f"the plugin {self._name} failed ({type(error).__name__}: {error})"
            raise EmbedError(detail) from error
