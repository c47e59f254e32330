"""How does the pool work? Known without the pool, to those who ask whether a stage changed."""

from msgspec import Struct

from kb.intake.chunker.rules import ENTRY_SECTION_LEVEL, fingerprint
from kb.intake.embed.protocol import Embedder
from kb.model.config import Settings


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """The settings of the pool. Times are in milliseconds."""

    threads: int = 2
    lease_ms: int = 120_000
    idle_ms: int = 200
    tokens_max: int = 256
    overlap_tokens: int = 32
    entry_tokens_max: int = 256
    entry_overlap_tokens: int = 32

    @property
    def chunker(self) -> str:
        """Names how chunks are cut."""
        entries = fingerprint(self.entry_tokens_max, self.entry_overlap_tokens, ENTRY_SECTION_LEVEL)
        return f"{fingerprint(self.tokens_max, self.overlap_tokens)};entry:{entries}"


def worker_settings(settings: Settings, embedder: Embedder) -> WorkerSettings:
    """The pool's settings, limited to the tokens that the model reads."""
    entry_tokens_max = min(settings.entry.tokens_max, embedder.tokens_max)
    return WorkerSettings(
        threads=settings.work.threads,
        lease_ms=settings.work.lease_ms,
        idle_ms=settings.work.idle_ms,
        tokens_max=min(settings.chunk.tokens_max, embedder.tokens_max),
        overlap_tokens=settings.chunk.overlap_tokens,
        entry_tokens_max=entry_tokens_max,
        entry_overlap_tokens=min(settings.entry.overlap_tokens, entry_tokens_max // 4),
    )
