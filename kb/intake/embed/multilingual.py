"""The multilingual model, which a package of its own brings; needs `kb-search[multilingual]`."""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kb.errors import ModelMissing, install_command
from kb.intake.embed.onnx import OnnxEmbedder
from kb.model.embedder import EmbedderChoice

PACKAGE: Final = "kb_search_multilingual"


def make(choice: EmbedderChoice, threads: int) -> OnnxEmbedder:
    """The embedder of the package. Raises ModelMissing where it is not installed."""
    folder = model_dir()
    if folder is None:
        raise ModelMissing(
            f"the multilingual model is not installed; run `{install_command('multilingual')}`"
            " (in a clone of kb, `make multilingual`)"
        )
    return OnnxEmbedder(
        folder,
        threads=threads,
        query_prefix=choice.query_prefix,
        passage_prefix=choice.passage_prefix,
    )


def offer() -> str:
    """What a person types to have every script read by meaning."""
    choose = "kb embedder set multilingual"
    return choose if model_dir() else f"{install_command('multilingual')}, then {choose}"


def model_dir() -> Path | None:
    """The folder of the package, nothing of which is run; None where it is not installed."""
    spec = find_spec(PACKAGE)
    return Path(spec.origin).parent if spec is not None and spec.origin else None
