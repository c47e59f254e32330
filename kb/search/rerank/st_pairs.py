"""Any CrossEncoder of sentence-transformers, by name or folder; needs the extra `kb-search[st]`."""

import threading
from collections.abc import Sequence
from typing import Any, Final

from kb.errors import RerankError
from kb.intake.embed.protocol import without_surrogates
from kb.intake.embed.st import load_model
from kb.model.config import RerankSettings
from kb.search.rerank.scores import logistic


def make(settings: RerankSettings, threads: int) -> "SentenceTransformersReranker":  # noqa: ARG001
    """The cross-encoder of a name or folder, loaded; torch counts its threads itself.

    Raises ModelMissing.
    """
    return SentenceTransformersReranker(settings.model)


class SentenceTransformersReranker:
    """Loads the model at once; it may have one label, or two of which the second means yes.

    Raises ModelMissing if the extra is not installed, or there is no such model. No code that comes
    with a model is run.
    """

    def __init__(self, name_or_path: str) -> None:
        self._model = load_model("CrossEncoder", name_or_path)
        # The library's own state, its tokenizer's truncation say, is for one call at a time.
        self._lock = threading.Lock()

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """A score from 0 to 1 for each chunk."""
        import numpy as np

        pairs = [(without_surrogates(query), without_surrogates(text)) for text in passages]
        try:
            with self._lock:
                logits = self._model.predict(
                    pairs,
                    batch_size=max(1, len(pairs)),
                    show_progress_bar=False,
                    activation_fn=_unchanged,
                )
            matrix = np.asarray(logits, np.float64).reshape(len(pairs), -1)
        except Exception as error:
            raise RerankError(f"the reranker failed: {error}") from error
        if matrix.shape[1] not in _LABELS:
            raise RerankError(f"the reranker has {matrix.shape[1]} labels, not one or two")
        yes = matrix[:, -1] - (matrix[:, 0] if matrix.shape[1] == 2 else 0.0)
        return [logistic(value) for value in yes.tolist()]


_LABELS: Final = (1, 2)


def _unchanged(logits: Any) -> Any:
    """Keep the logits: their scores are made here, as those of ONNX models are."""
    return logits
