"""Which model does a choice name? kb's own kinds, and those of plugins."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from kb.intake.embed.protocol import Embedder
from kb.model.embedder import EmbedderChoice, EmbedServer
from kb.model.entry_points import target_of

if TYPE_CHECKING:
    from kb.intake.embed.plugin import MakeEmbedder

BUILT_IN: Final[Mapping[str, str]] = {
    "onnx": "kb.intake.embed.onnx:make",
    "multilingual": "kb.intake.embed.multilingual:make",
    "sentence-transformers": "kb.intake.embed.st:make",
    "hashing": "kb.intake.embed.hashing:make",
    "openai": "kb.intake.embed.served:make",
    "ollama": "kb.intake.embed.served:make",
}
"""What makes the embedders of each kind. A plugin of such a name is not used."""
SERVED: Final = ("openai", "ollama")
"""The kinds that ask a server."""


def make_embedder(
    choice: EmbedderChoice, threads: int = 0, server: EmbedServer | None = None
) -> Embedder:
    """The embedder that a choice names; `threads` is for those that ask, and 0 means all cores.

    `server` is for the kinds in SERVED.

    `model` is a folder for onnx (empty: the built-in one), a name or folder for
    sentence-transformers, a server's name of it for openai and ollama, and what a plugin says for a
    plugin; multilingual and hashing have none.
    `scripts` says what a sentence-transformers model reads (empty: all).

    Raises:
        ModelMissing: there is no such model, the extra that runs it is not installed, or the plugin
            that makes it fails.
    """
    target = BUILT_IN.get(choice.kind)
    if choice.kind in SERVED:
        from kb.intake.embed.served import make

        return make(choice, server or EmbedServer())
    if target is not None:
        return cast("MakeEmbedder", target_of(target))(choice, threads)
    from kb.intake.embed.plugin import make_by_plugin

    return make_by_plugin(choice, threads, tuple(BUILT_IN))
