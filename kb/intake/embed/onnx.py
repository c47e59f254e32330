"""A model as an ONNX file: the built-in one, or another of the same shape.

The graph takes one text (`input_ids`, int64 (tokens,)) and returns its unit vector. Texts are never
padded into batches: the rows of a batch would share a quantisation step, and so change each other's
vectors. One text per thread is also faster.
"""

import hashlib
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kb.errors import EmbedError, ModelMissing
from kb.intake.embed import verified
from kb.intake.embed.background import InBackground
from kb.intake.embed.mapped_graph import with_mapped_weights
from kb.intake.embed.protocol import (
    FloatMatrix,
    FloatVector,
    Span,
    checked,
    prefixes_mark,
    without_surrogates,
)
from kb.intake.embed.runtime import cores, session_of
from kb.model.decoding import decode_json
from kb.model.embedder import EmbedderChoice

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    from kb.intake.embed.pieces import Pieces
    from kb.intake.embed.wordpiece import WordPieces

BUILTIN_MODEL: Final = "all-MiniLM-L6-v2-int8"
_CARD: Final = "model.json"
_GRAPH: Final = "model.onnx"
_TOKENIZER: Final = "tokenizer.json"
PIECES: Final = "pieces.bin"
"""The vocabulary of a Unigram model in the form of kb/intake/embed/pieces.py."""
# The text beyond this has no influence on the tokens that are read, unless a text is mostly blank.
_CHARS_READ_PER_TOKEN: Final = 64
_TEXTS_AT_ONCE: Final = 64
_SHORT_CHARS_MAX: Final = 512
_REMEDY: Final = "install kb again, or set the model to a folder that holds one"


class _Card(msgspec.Struct, frozen=True, kw_only=True):
    """model.json, which describes the folder. Its other fields are for people."""

    name: str
    dim: int
    tokens_max: int
    scripts: tuple[str, ...]
    query_prefix: str = ""
    """What the model was trained to read before a query; a choice may name another."""
    passage_prefix: str = ""
    files: dict[str, str]
    """SHA-256 by file name."""


def builtin_model_dir() -> Path:
    """The folder of the built-in model: beside this module in a wheel, in models/ in a checkout.

    Raises:
        ModelMissing: in neither.
    """
    here = Path(__file__).resolve().parent
    places = (here / "models", here.parents[2] / "models")
    for place in places:
        if (place / BUILTIN_MODEL / _CARD).is_file():
            return place / BUILTIN_MODEL
    raise ModelMissing(f"the built-in model is not at {places[0] / BUILTIN_MODEL}; {_REMEDY}")


def make(choice: EmbedderChoice, threads: int) -> "OnnxEmbedder":
    """The embedder of a folder, or the built-in one. Raises ModelMissing."""
    return OnnxEmbedder(
        Path(choice.model).expanduser() if choice.model else builtin_model_dir(),
        threads=threads,
        query_prefix=choice.query_prefix,
        passage_prefix=choice.passage_prefix,
    )


class OnnxEmbedder:
    """Runs a folder of model.onnx, tokenizer.json and model.json on the processor.

    The tokenizer loads at the first use of tokens, the graph at the first vector; a single short
    text needs no whole tokenizer if that is WordPiece, or the folder has a file of pieces. Each
    file is held against its SHA-256 as it loads. `threads` 0 means all cores; an empty prefix means
    that of model.json.

    Raises:
        ModelMissing: a file is not there or not what model.json says; from the constructor, or
            from the first use.
    """

    def __init__(
        self,
        model_dir: Path,
        *,
        threads: int = 0,
        query_prefix: str = "",
        passage_prefix: str = "",
    ) -> None:
        self._dir = model_dir
        self._card = _read_card(model_dir)
        self._threads = threads or cores()
        self._query_prefix = query_prefix or self._card.query_prefix
        self._passage_prefix = passage_prefix or self._card.passage_prefix
        self._tokenizer: Tokenizer | None = None
        self._pieces: Pieces | WordPieces | None = None
        self._session: InferenceSession | None = None
        self._tokenizer_lock = threading.Lock()
        self._session_lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """`onnx:`, name, 12 digits of the graph's SHA-256, prefixes if any."""
        digest = self._card.files[_GRAPH][:12]
        mark = prefixes_mark(self._query_prefix, self._passage_prefix)
        return f"onnx:{self._card.name}:{digest}{mark}"

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._card.dim

    @property
    def tokens_max(self) -> int:
        """Tokens of a text that are read, special ones included."""
        return self._card.tokens_max

    @property
    def scripts(self) -> frozenset[str]:
        """Scripts that the model reads well."""
        return frozenset(self._card.scripts)

    def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        """(len(texts), dim) float32 unit vectors."""
        return self._embed(texts, self._passage_prefix)

    def embed_query(self, text: str) -> FloatVector:
        """(dim,) float32 unit vector."""
        vector: FloatVector = self._embed([text], self._query_prefix)[0]
        return vector

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each whole text."""
        if row := self._short_row(texts):
            return [len(row[0]) - len(self._short_row([""])[0])]
        return [len(encoding) for encoding in self._encoded(texts)]

    def token_spans(self, text: str) -> list[Span]:
        """Character offsets of each token."""
        return self.token_spans_batch([text])[0]

    def token_spans_batch(self, texts: Sequence[str]) -> list[list[Span]]:
        """`token_spans` of each text."""
        return [encoding.offsets for encoding in self._encoded(texts)]

    def _embed(self, texts: Sequence[str], prefix: str) -> FloatMatrix:
        import numpy as np

        if not texts:
            return np.empty((0, self.dim), np.float32)
        if self._session is None:
            # Both loads take about the same time, and loading the graph releases the interpreter
            # lock.
            loading = InBackground(self._loaded_session)
            rows = self._token_rows(texts, prefix)
            session = loading.result()
        else:
            session = self._session
            rows = self._token_rows(texts, prefix)
        vectors = np.empty((len(rows), self.dim), np.float32)

        def fill(place: int) -> None:
            vectors[place] = _vector(session, np.array(rows[place], np.int64), self.dim)

        # The longest come first, so that no thread is left with a long text at the end.
        order = sorted(range(len(rows)), key=lambda place: -len(rows[place]))
        workers = min(self._threads, len(rows))
        if workers == 1:
            for place in order:
                fill(place)
        else:
            # Imported late: a search embeds one text, and needs no pool.
            from concurrent.futures import ThreadPoolExecutor

            # Each call has a pool of its own, so that none can deadlock after a fork.
            with ThreadPoolExecutor(workers) as pool:
                for _ in pool.map(fill, order):
                    pass
        return checked(vectors, len(rows), self.dim)

    def _token_rows(self, texts: Sequence[str], prefix: str) -> list[list[int]]:
        chars_max = self.tokens_max * _CHARS_READ_PER_TOKEN
        read = [(prefix + text)[:chars_max] for text in texts]
        rows = self._short_row(read) or [row.ids for row in self._encoded(read, special=True)]
        # The last token closes the text, so it stays when the text is cut.
        cut = self.tokens_max - 1
        return [ids if len(ids) <= self.tokens_max else [*ids[:cut], ids[-1]] for ids in rows]

    def _short_row(self, texts: Sequence[str]) -> list[list[int]]:
        """The row of one short text, where its tokens are found without the whole tokenizer."""
        if self._tokenizer is not None or len(texts) != 1 or len(texts[0]) > _SHORT_CHARS_MAX:
            return []
        with self._tokenizer_lock:
            if self._pieces is None:
                self._pieces = _load_pieces(self._dir, self._card)
            return [self._pieces.ids(without_surrogates(texts[0]))] if self._pieces else []

    def _encoded(self, texts: Sequence[str], *, special: bool = False) -> Iterator[Any]:
        """The encoding of each text.

        Only few exist at a time, because each is far larger than its text.
        """
        tokenizer = self._loaded_tokenizer()
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            clean = [without_surrogates(text) for text in texts[first : first + _TEXTS_AT_ONCE]]
            yield from tokenizer.encode_batch(clean, add_special_tokens=special)

    def _loaded_tokenizer(self) -> "Tokenizer":
        with self._tokenizer_lock:
            if self._tokenizer is None:
                self._tokenizer = _load_tokenizer(self._dir, self._card)
            return self._tokenizer

    def _loaded_session(self) -> "InferenceSession":
        with self._session_lock:
            if self._session is None:
                self._session = _load_session(self._dir, self._card)
            return self._session


def _read_card(model_dir: Path) -> _Card:
    try:
        card = decode_json((model_dir / _CARD).read_bytes(), _Card)
        for name in (_GRAPH, _TOKENIZER):
            if not card.files.get(name) or not (model_dir / name).is_file():
                raise ModelMissing(f"the model at {model_dir} has no {name}; {_REMEDY}")
    except (OSError, msgspec.DecodeError) as error:
        raise ModelMissing(f"there is no model at {model_dir} ({error}); {_REMEDY}") from error
    return card


def _load_tokenizer(model_dir: Path, card: _Card) -> "Tokenizer":
    from tokenizers import Tokenizer

    raw = _read(model_dir, _TOKENIZER, card)
    try:
        tokenizer = Tokenizer.from_buffer(raw)
    except Exception as error:
        raise ModelMissing(
            f"{model_dir / _TOKENIZER} cannot be loaded: {error}; {_REMEDY}"
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # A text that quotes "[SEP]" contains these five characters; it does not end there.
    tokenizer.encode_special_tokens = True
    return tokenizer


def _load_pieces(model_dir: Path, card: _Card) -> "Pieces | WordPieces | None":
    """What cuts a short text quickly; None where only the whole tokenizer can."""
    if PIECES not in card.files:
        from kb.intake.embed.wordpiece import WordPieces

        try:
            return WordPieces(_read(model_dir, _TOKENIZER, card))
        except (ValueError, LookupError, msgspec.DecodeError):
            return None
    from kb.intake.embed.pieces import Pieces

    raw = _read(model_dir, PIECES, card)
    try:
        return Pieces(raw)
    except Exception as error:
        raise ModelMissing(f"{model_dir / PIECES} cannot be loaded: {error}; {_REMEDY}") from error


def _read(model_dir: Path, name: str, card: _Card) -> bytes:
    try:
        raw = (model_dir / name).read_bytes()
    except OSError as error:
        raise ModelMissing(f"{model_dir / name}: {error}; {_REMEDY}") from error
    _expect(hashlib.sha256(raw).hexdigest(), model_dir, name, card)
    return raw


def _load_session(model_dir: Path, card: _Card) -> "InferenceSession":
    path, expected = model_dir / _GRAPH, card.files[_GRAPH]
    try:
        state = verified.state_of(path)
        if verified.is_verified(path, state, expected):
            return _session_at(path)
        # Hashing and loading read the same file at the same time, and neither waits for the other.
        hashing = InBackground(lambda: _sha256_of(path))
        session: InferenceSession | ModelMissing
        try:
            session = _session_at(path)
        except ModelMissing as failure:
            session = failure
        sha256 = hashing.result()
    except OSError as error:
        raise ModelMissing(f"{path}: {error}; {_REMEDY}") from error
    _expect(sha256, model_dir, _GRAPH, card)
    if isinstance(session, ModelMissing):
        raise session
    verified.remember(path, state, sha256, time.time_ns())
    return session


def _session_at(path: Path) -> "InferenceSession":
    graph = with_mapped_weights(path)
    if graph is not None:
        # Runtimes before 1.21 look for the weights elsewhere.
        with suppress(Exception):
            return session_of(graph, weights_in=str(path.parent))
    try:
        return session_of(str(path))
    except Exception as error:
        raise ModelMissing(f"{path} cannot be loaded: {error}; {_REMEDY}") from error


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _expect(sha256: str, model_dir: Path, name: str, card: _Card) -> None:
    if sha256 != card.files[name]:
        raise ModelMissing(
            f"{model_dir / name} is not the file that {_CARD} names"
            f" (sha256 {sha256[:12]}, expected {card.files[name][:12]}); {_REMEDY}"
        )


def _vector(session: "InferenceSession", input_ids: Any, dim: int) -> FloatVector:
    try:
        vector: FloatVector = session.run(None, {"input_ids": input_ids})[0]
    except Exception as error:
        raise EmbedError(f"the model failed on {len(input_ids)} tokens: {error}") from error
    if vector.shape != (dim,):
        raise EmbedError(f"the model returned an array of shape {vector.shape}, not {(dim,)}")
    return vector
