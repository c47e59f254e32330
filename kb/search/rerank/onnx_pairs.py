"""Runs a cross-encoder in ONNX form: a folder with `model.onnx` and `tokenizer.json`."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb.errors import ModelMissing, RerankError
from kb.intake.embed.protocol import without_surrogates
from kb.intake.embed.runtime import cores, session_of
from kb.model.config import RerankSettings
from kb.search.rerank.scores import logistic

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Encoding, Tokenizer

_GRAPH: Final = "model.onnx"
_TOKENIZER: Final = "tokenizer.json"
_TOKENS_MAX: Final = 512
# The text beyond this has no influence on the tokens that are read, unless a text is mostly blank.
_CHARS_READ_PER_TOKEN: Final = 64
_REMEDY: Final = "set rerank.model to a folder that holds one"


def make(settings: RerankSettings, threads: int) -> "OnnxReranker":
    """The cross-encoder of a folder, loaded. Raises ModelMissing."""
    if not settings.model:
        raise ModelMissing(f"rerank.kind = onnx needs a model; {_REMEDY}")
    folder = Path(settings.model).expanduser()
    if not folder.is_absolute():
        # Relative to the working directory it could be a stranger's, in a clone.
        raise ModelMissing(f"rerank.model = {settings.model} is no whole path; {_REMEDY}")
    return OnnxReranker(folder, threads=threads)


class OnnxReranker:
    """Loads the folder at once; each pair of query and chunk runs by itself, one in each thread.

    A graph takes `input_ids`, and `attention_mask` and `token_type_ids` if it has them, shape
    (1, tokens). It returns shape (1, 1), whose logistic function is the score, or (1, 2), whose
    second part after a softmax is. A pair is cut to the length that the tokenizer names, else to
    512 tokens, and of its two texts the longer one.

    Raises:
        ModelMissing: a file is not there, or is none of a cross-encoder.
    """

    def __init__(self, model_dir: Path, *, threads: int = 0) -> None:
        self._threads = threads or cores()
        self._tokenizer, tokens_max = _loaded_tokenizer(model_dir / _TOKENIZER)
        self._chars_max = tokens_max * _CHARS_READ_PER_TOKEN
        self._session = _loaded_graph(model_dir / _GRAPH)
        self._inputs = tuple(field.name for field in self._session.get_inputs())
        unknown = set(self._inputs) - set(_INPUTS)
        if unknown or "input_ids" not in self._inputs:
            detail = f"takes {', '.join(self._inputs)}, which is not what a cross-encoder takes"
            raise ModelMissing(f"{model_dir / _GRAPH} {detail}; {_REMEDY}")

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """A score from 0 to 1 for each chunk."""
        read = [without_surrogates(text)[: self._chars_max] for text in (query, *passages)]
        pairs = [(read[0], passage) for passage in read[1:]]
        rows = self._tokenizer.encode_batch(pairs)
        workers = min(self._threads, len(rows))
        if workers <= 1:
            return [self._score_of(row) for row in rows]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(self._score_of, rows))

    def _score_of(self, row: "Encoding") -> float:
        import numpy as np

        feed = {name: np.array([getattr(row, _INPUTS[name])], np.int64) for name in self._inputs}
        try:
            logits = np.asarray(self._session.run(None, feed)[0], np.float64)
        except Exception as error:
            raise RerankError(f"the reranker failed on {len(row.ids)} tokens: {error}") from error
        if logits.shape == (1, 1):
            return logistic(logits[0, 0])
        if logits.shape == (1, 2):
            return logistic(logits[0, 1] - logits[0, 0])
        raise RerankError(f"the reranker returned an array of shape {logits.shape}, not (1, 1)")


_INPUTS: Final = {
    "input_ids": "ids",
    "attention_mask": "attention_mask",
    "token_type_ids": "type_ids",
}
"""What a graph takes, and what the tokenizer calls it."""


def _loaded_tokenizer(file: Path) -> "tuple[Tokenizer, int]":
    """The tokenizer, and how many tokens of a pair it keeps."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_buffer(file.read_bytes())
    except OSError as error:
        detail = f"there is no reranker at {file.parent} ({error.strerror}: {file.name})"
        raise ModelMissing(f"{detail}; {_REMEDY}") from error
    except Exception as error:
        raise ModelMissing(f"{file} cannot be loaded: {error}; {_REMEDY}") from error
    tokens_max = int((tokenizer.truncation or {}).get("max_length", _TOKENS_MAX))
    tokenizer.enable_truncation(tokens_max, strategy="longest_first")
    tokenizer.no_padding()
    # A text that quotes "[SEP]" contains these five characters; it does not end there.
    tokenizer.encode_special_tokens = True
    return tokenizer, tokens_max


def _loaded_graph(file: Path) -> "InferenceSession":
    if not file.is_file():
        raise ModelMissing(f"there is no reranker at {file.parent} (no {_GRAPH}); {_REMEDY}")
    try:
        return session_of(str(file), is_prepared=False)
    except Exception as error:
        raise ModelMissing(f"{file} cannot be loaded: {error}; {_REMEDY}") from error
