"""Which model embeds a home's passages: now, next, and before."""

from typing import Literal

from msgspec import Struct

EmbedderKind = Literal["onnx", "sentence-transformers", "hashing"]


class EmbedderChoice(Struct, frozen=True, kw_only=True):
    """What a person says to name a model; an empty `model` of kind onnx is the built-in one."""

    kind: EmbedderKind
    model: str = ""
    query_prefix: str = ""
    passage_prefix: str = ""
    scripts: tuple[str, ...] = ()


class EmbedderSpec(Struct, frozen=True, kw_only=True):
    """A choice, and what it was when it was made: the model behind a name may change."""

    choice: EmbedderChoice
    fingerprint: str
    dim: int


class EmbedderSet(Struct, frozen=True, kw_only=True):
    """The sets of vectors that a home keeps; each model has its own, and they never mix."""

    active: EmbedderSpec
    """Searches use it."""
    settings: EmbedderChoice
    """What the settings asked for when `active` or `next` was chosen."""
    next: EmbedderSpec | None = None
    """Its vectors are being made; once all are there it becomes the active one."""
    previous: EmbedderSpec | None = None
    """Was active before, and may be again until compaction frees its vectors."""
    switched_ms: int = 0
    switched_run: int = 0
    """How many compactions had come to their end then."""

    @property
    def retained(self) -> tuple[EmbedderSpec, ...]:
        """Those whose vectors stay."""
        return tuple(one for one in (self.active, self.next, self.previous) if one is not None)
