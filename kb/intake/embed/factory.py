"""Which model do the settings name? The only module that knows the implementations by name."""

from pathlib import Path
from typing import assert_never

from kb.intake.embed.protocol import ANY_SCRIPT, Embedder
from kb.model.embedder import EmbedderKind


def make_embedder(
    kind: EmbedderKind,
    *,
    model: str = "",
    threads: int = 0,
    query_prefix: str = "",
    passage_prefix: str = "",
    scripts: tuple[str, ...] = (),
) -> Embedder:
    """The embedder of this kind.

    `model` is a folder for onnx (empty: the built-in one), a name or folder for
    sentence-transformers; hashing has none, and no prefixes. `scripts` says what a
    sentence-transformers model reads (empty: all). `threads` is for onnx; 0 means all cores.

    Raises:
        ModelMissing: there is no such model, or the extra that runs it is not installed.
    """
    match kind:
        case "onnx":
            from kb.intake.embed.onnx import OnnxEmbedder, builtin_model_dir

            return OnnxEmbedder(
                Path(model).expanduser() if model else builtin_model_dir(),
                threads=threads,
                query_prefix=query_prefix,
                passage_prefix=passage_prefix,
            )
        case "sentence-transformers":
            from kb.intake.embed.st import SentenceTransformersEmbedder

            return SentenceTransformersEmbedder(
                model,
                query_prefix=query_prefix,
                passage_prefix=passage_prefix,
                scripts=frozenset(scripts) or ANY_SCRIPT,
            )
        case "hashing":
            from kb.intake.embed.hashing import HashingEmbedder

            return HashingEmbedder()
        case _:
            assert_never(kind)
