"""The backends of a search: the lexical indexes, and a model with the index of its vectors."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from kb.errors import ModelMissing
from kb.model.config import RerankSettings

if TYPE_CHECKING:
    from kb.intake.embed.protocol import Embedder, FloatVector
    from kb.search.index.dense import DenseIndex
    from kb.search.index.lexical_indexes import LexicalIndexes
    from kb.search.rerank.scores import Reranker


class DenseBackend(Struct, frozen=True, kw_only=True):
    """An embedding model and the index of its vectors; each is of no use without the other."""

    embedder: "Embedder"
    index: "DenseIndex"
    warning: str | None = None
    """Why it may not be the model that the settings name."""


def _embed_query(embedder: "Embedder", text: str) -> "FloatVector":
    return embedder.embed_query(text)


def _no_reranker(settings: RerankSettings) -> "Reranker":
    raise ModelMissing(f"there is no reranker {settings.kind} here")


class SearchBackends(Struct, frozen=True, kw_only=True):
    """What a searcher needs and is costly to open; each is opened at its first use."""

    lexical: "Callable[[], LexicalIndexes]"
    dense: Callable[[int | None], DenseBackend]
    """Called once per query with a commit that it has seen: the home's model may change later."""
    embed_query: "Callable[[Embedder, str], FloatVector]" = _embed_query
    rerank: RerankSettings = RerankSettings()
    reranker: "Callable[[RerankSettings], Reranker]" = _no_reranker
    """Loads what these settings name, if it is not loaded yet. Raises ModelMissing."""
