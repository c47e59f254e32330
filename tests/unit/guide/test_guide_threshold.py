"""What is answered and what is not, on labelled questions; and what other models change."""

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from kb.intake.embed.onnx import OnnxEmbedder, builtin_model_dir
from kb.intake.embed.protocol import FloatMatrix, FloatVector
from kb.knowledge.guide.background import background_of
from kb.knowledge.guide.score import BUILT_IN, SCORE_MIN, nearness, score_min, score_of, share

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that measures."""
    spec = importlib.util.spec_from_file_location("calibrate", ROOT / "scripts/calibrate_guide.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def builtin() -> OnnxEmbedder:
    return OnnxEmbedder(builtin_model_dir())


class Shifted:
    """The built-in model, all of whose vectors lean one way, as those of many models do."""

    def __init__(self, inner: OnnxEmbedder, lean: float) -> None:
        self.inner = inner
        self.lean = lean

    def _leant(self, rows: FloatMatrix) -> FloatMatrix:
        # In a dimension of its own, where the model itself says nothing.
        wide = np.hstack([rows, np.full((len(rows), 1), self.lean, dtype=np.float32)])
        return (wide / np.linalg.norm(wide, axis=1, keepdims=True)).astype(np.float32)

    def embed_query(self, text: str) -> FloatVector:
        return self._leant(self.inner.embed_query(text)[None])[0]

    def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        return self._leant(self.inner.embed_documents(texts))


def test_what_can_be_answered_is_and_the_rest_is_not(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all, and of those that had no part in the choice: at least 90 % found, 10 % too many."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    rows = json.loads((ROOT / "tests/data/guide_questions.json").read_text("utf-8"))
    assert len({row["question"] for row in rows}) == len(rows) >= 60
    assert sum(row["entry"] is not None for row in rows) * 2 == len(rows)
    asked = script.measured()
    fit, report = script.halves(asked)
    assert SCORE_MIN[BUILT_IN] == script.chosen(fit)
    for some in (asked, report):
        at = script.rates(some, SCORE_MIN[BUILT_IN])
        assert at.found_right >= 0.9
        assert at.found_wrong <= 0.1
    at = script.rates(report, SCORE_MIN[BUILT_IN])
    row = f"| {at.found_right:.3f} | {at.found_wrong:.3f} |"
    assert row in (ROOT / "docs/guide-threshold.md").read_text("utf-8")


def test_the_figure_is_that_of_the_model_that_ships(builtin: OnnxEmbedder) -> None:
    """Another model under the same name would be noticed; unknown ones have the common figure."""
    assert builtin.fingerprint == BUILT_IN
    assert score_min("another") == score_min(None) == SCORE_MIN[BUILT_IN]


@pytest.mark.parametrize("lean", [0.5, 1.0, 2.0])
def test_what_all_vectors_have_in_common_does_not_count(builtin: OnnxEmbedder, lean: float) -> None:
    """A model whose unrelated texts are far nearer to each other says the same of nearness."""
    shifted = Shifted(builtin, lean)
    plain, high = background_of(builtin), background_of(shifted)  # type: ignore[arg-type]
    assert high > plain + 0.15
    for asked, said in (
        ("how do I make a backup", "Copies the whole home while others use it."),
        ("how do I make a backup", "A pear tree in blossom."),
    ):
        one = float(builtin.embed_query(asked) @ builtin.embed_documents([said])[0])
        other = float(shifted.embed_query(asked) @ shifted.embed_documents([said])[0])
        assert nearness(other, high) == pytest.approx(nearness(one, plain), abs=1e-4)


def test_the_parts_of_a_score() -> None:
    """Nearness counts half, each share of words a quarter; none goes below 0 or above 1."""
    assert score_of(1.0, 1.0, 1.0) == 1.0
    assert score_of(1.0, 0.0, 0.0) == 0.5
    assert score_of(0.0, 1.0, 0.0) == score_of(0.0, 0.0, 1.0) == 0.25
    assert (nearness(0.1, 0.2), nearness(1.0, 0.2), nearness(1.0, 1.0)) == (0.0, 1.0, 0.0)
    assert (share([], {"a"}), share(["a", "b"], {"a"})) == (0.0, 0.5)
