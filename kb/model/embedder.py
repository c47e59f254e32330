"""The embedding models of a home: the active, the next and the previous one."""

from msgspec import Struct


class EmbedderChoice(Struct, frozen=True, kw_only=True):
    """A model as settings name it; an empty `model` of kind onnx is the built-in one."""

    kind: str
    """onnx, multilingual, sentence-transformers, openai, ollama, hashing, or a plugin's name."""
    model: str = ""
    query_prefix: str = ""
    passage_prefix: str = ""
    scripts: tuple[str, ...] = ()


class EmbedServer(Struct, frozen=True, kw_only=True):
    """The server of a model that is asked over HTTP, as the user's settings name it.

    It is no part of a choice: a home that came from elsewhere says nothing of where texts go.
    """

    base_url: str = ""
    timeout_s: float = 60.0
    tries: int = 3
    tokens_max: int = 512
    dim: int = 0
    """The length of the model's vectors, where a home knows it; 0 to ask the server."""


class EmbedderSpec(Struct, frozen=True, kw_only=True):
    """A choice with the fingerprint of its model, because the model behind a name may change."""

    choice: EmbedderChoice
    fingerprint: str
    dim: int


class EmbedderSet(Struct, frozen=True, kw_only=True):
    """The models whose vectors a home keeps; vectors of different models never mix."""

    active: EmbedderSpec
    """Searches use it."""
    settings: EmbedderChoice
    """What the settings asked for when `active` or `next` was chosen."""
    next: EmbedderSpec | None = None
    """Its vectors are being made; when they are complete it becomes the active model."""
    previous: EmbedderSpec | None = None
    """The model before, which can be restored until compaction removes its vectors."""
    switched_ms: int = 0
    switched_run: int = 0
    """How many compactions had finished then."""

    @property
    def retained(self) -> tuple[EmbedderSpec, ...]:
        """The models whose vectors are kept."""
        return tuple(spec for spec in (self.active, self.next, self.previous) if spec is not None)
