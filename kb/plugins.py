"""What is a plugin for kb made of?

A distribution offers a plugin by an entry point in one of four groups:

- `kb.parsers`: a ParserPlugin, which says what it reads and where its `read` is.
- `kb.embedders`: a function `make(choice: EmbedderChoice, threads: int) -> Embedder`.
- `kb.rerankers`: a function `make(settings: RerankSettings, threads: int) -> Reranker`.
- `kb.llm`: a function `make(settings: LlmSettings, env: Mapping[str, str]) -> Provider`.

docs/how-to/plugin-parser.md, plugin-embedder.md, plugin-reranker.md and plugin-llm.md have an
example of each. The names here stay through 1.x.
"""

from kb.intake.canonicalize.parsers import ParserPlugin
from kb.intake.embed.protocol import ANY_SCRIPT, Embedder
from kb.knowledge.llm.protocol import Provider
from kb.model.config import LlmSettings, RerankSettings
from kb.model.embedder import EmbedderChoice
from kb.model.text import Canonical
from kb.search.rerank.scores import Reranker

__all__ = [
    "ANY_SCRIPT",
    "Canonical",
    "Embedder",
    "EmbedderChoice",
    "LlmSettings",
    "ParserPlugin",
    "Provider",
    "RerankSettings",
    "Reranker",
]
