"""What does every model promise? Texts in, checked unit vectors and token offsets out."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from kb.errors import EmbedError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Strings, so that this module loads without numpy.
FloatMatrix: TypeAlias = "npt.NDArray[np.float32]"
FloatVector: TypeAlias = "npt.NDArray[np.float32]"
Span: TypeAlias = tuple[int, int]

ANY_SCRIPT: Final = frozenset({"*"})
_NORM_TOLERANCE: Final = 1e-3
_SURROGATES: Final = "[\ud800-\udfff]"


class Embedder(Protocol):
    """A model. Every text has a vector: empty ones, any script, lone surrogates.

    The same text gives the same vector, whatever is embedded with it. Safe to share by threads.
    Methods raise ModelMissing when the model cannot be loaded, EmbedError when it fails.
    """

    @property
    def fingerprint(self) -> str:
        """Names the model, its weights and prefixes.

        Vectors of different fingerprints do not compare.
        """
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    @property
    def tokens_max(self) -> int:
        """How many tokens of a text it reads, special ones included; the rest is cut off."""
        ...

    @property
    def scripts(self) -> frozenset[str]:
        """Names from kb.intake.embed.scripts that the model reads well; ANY_SCRIPT for all."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        """(len(texts), dim) float32, rows of length 1, in the order of the texts."""
        ...

    def embed_query(self, text: str) -> FloatVector:
        """(dim,) float32 of length 1."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each whole text, without prefixes and special tokens, nothing cut off."""
        ...

    def token_spans(self, text: str) -> list[Span]:
        """Where each token that count_tokens counts lies: text[start:end], none of them empty.

        Starts and ends ascend. Tokens overlap only where several stand for one character, a
        Hangul syllable say: each then spans that character.
        """
        ...

    def token_spans_batch(self, texts: Sequence[str]) -> list[list[Span]]:
        """`token_spans` of each text, faster together."""
        ...


def checked(vectors: object, n: int, dim: int) -> FloatMatrix:
    """The model's output as float32 (n, dim); rows are unit vectors.

    Raises EmbedError on another shape, on NaN or infinity, and on rows of another length.
    """
    import numpy as np

    matrix = np.asarray(vectors, dtype=np.float32)
    if matrix.shape != (n, dim):
        raise EmbedError(f"the model returned an array of shape {matrix.shape}, not {(n, dim)}")
    if not np.isfinite(matrix).all():
        row = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
        raise EmbedError(f"the model returned NaN or infinity for text {row} of {n}")
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    if n and (off := np.abs(lengths - 1)).max() > _NORM_TOLERANCE:
        row = int(off.argmax())
        raise EmbedError(f"the vector of text {row} of {n} has length {lengths[row]:.4f}, not 1")
    return matrix


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which UTF-8 cannot encode; offsets stay."""
    return text if text.isascii() else re.sub(_SURROGATES, "\ufffd", text)


def prefixes_mark(query_prefix: str, passage_prefix: str) -> str:
    """The prefixes' part of a fingerprint; empty when there are none."""
    return f":{query_prefix!r}{passage_prefix!r}" if query_prefix or passage_prefix else ""
