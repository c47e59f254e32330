"""Vectors without a model: words and their trigrams hashed into places. For tests and dry runs."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final
from zlib import crc32

from kb.intake.embed.protocol import (
    ANY_SCRIPT,
    FloatMatrix,
    FloatVector,
    Span,
    checked,
    without_surrogates,
)
from kb.model.embedder import EmbedderChoice

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\uf900-\ufaff"
_TOKEN: Final = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|[^\w\s]")
_TOKENS_MAX: Final = 256
_TRIGRAM_WEIGHT: Final = 0.25
# The one token of a text without tokens.
_NOTHING: Final = "\0"


def make(choice: EmbedderChoice, threads: int) -> "HashingEmbedder":  # noqa: ARG001
    """The one embedder of this kind."""
    return HashingEmbedder()


class HashingEmbedder:
    """Texts that share words, or parts of words, have near vectors.

    Uses signed feature hashing by CRC-32.
    """

    def __init__(self, dim: int = 1024) -> None:
        self._dim = dim

    @property
    def fingerprint(self) -> str:
        """`hashing:` and the dimension."""
        return f"hashing:{self._dim}"

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    @property
    def tokens_max(self) -> int:
        """How many tokens of a text it reads."""
        return _TOKENS_MAX

    @property
    def scripts(self) -> frozenset[str]:
        """All."""
        return ANY_SCRIPT

    def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        """(len(texts), dim) float32 unit vectors."""
        import numpy as np

        vectors = np.zeros((len(texts), self._dim), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            self._fill(vector, without_surrogates(text))
        return checked(vectors, len(texts), self._dim)

    def embed_query(self, text: str) -> FloatVector:
        """(dim,) float32 unit vector."""
        vector: FloatVector = self.embed_documents([text])[0]
        return vector

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each whole text."""
        return [len(self.token_spans(text)) for text in texts]

    def token_spans(self, text: str) -> list[Span]:
        """Words, single CJK characters and single signs."""
        return [match.span() for match in _TOKEN.finditer(without_surrogates(text))]

    def token_spans_batch(self, texts: Sequence[str]) -> list[list[Span]]:
        """`token_spans` of each text."""
        return [self.token_spans(text) for text in texts]

    def _fill(self, vector: FloatVector, text: str) -> None:
        import numpy as np

        words = [m.group().lower() for m in islice(_TOKEN.finditer(text), _TOKENS_MAX)]
        for word in words or [_NOTHING]:
            self._add(vector, word, 1.0)
            marked = f"<{word}>"
            for start in range(len(marked) - 2):
                self._add(vector, "#" + marked[start : start + 3], _TRIGRAM_WEIGHT)
        length = float(np.linalg.norm(vector))
        if length == 0:  # features of opposite sign met in one place
            vector[0] = length = 1.0
        vector /= length

    def _add(self, vector: FloatVector, feature: str, weight: float) -> None:
        digest = crc32(feature.encode())
        vector[(digest >> 1) % self._dim] += weight if digest & 1 else -weight
