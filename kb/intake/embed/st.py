"""Any sentence-transformers model, by name or folder; needs the extra `kb-search[st]`."""

import hashlib
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kb.errors import EmbedError, ModelMissing, install_command
from kb.intake.embed.device import device as chosen_device
from kb.intake.embed.protocol import (
    ANY_SCRIPT,
    FloatMatrix,
    FloatVector,
    Span,
    checked,
    prefixes_mark,
    without_surrogates,
)
from kb.model.embedder import EmbedderChoice

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_TOKENS_MAX_DEFAULT: Final = 512
_CHARS_READ_PER_TOKEN: Final = 64
_WEIGHTS_SAMPLED: Final = 16
# These fields change with the place or the library, not with the model.
_CONFIG_IGNORED: Final = ("_name_or_path", "transformers_version")


def make(choice: EmbedderChoice, threads: int) -> "SentenceTransformersEmbedder":  # noqa: ARG001
    """The embedder of a name or folder; torch counts its threads itself. Raises ModelMissing."""
    return SentenceTransformersEmbedder(
        choice.model,
        query_prefix=choice.query_prefix,
        passage_prefix=choice.passage_prefix,
        scripts=frozenset(choice.scripts) or ANY_SCRIPT,
    )


class SentenceTransformersEmbedder:
    """Loads the model at once. With `device` None torch chooses the device.

    Raises ModelMissing if the extra is not installed, or there is no such model.
    """

    def __init__(
        self,
        name_or_path: str,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        scripts: frozenset[str] = ANY_SCRIPT,
        batch: int = 16,
        device: str | None = None,
    ) -> None:
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._scripts = scripts
        self._batch = batch
        self._model: SentenceTransformer = load_model(
            "SentenceTransformer", name_or_path, device=device or chosen_device() or None
        )
        self._tokenizer = _fast_tokenizer(self._model, name_or_path)
        self._dim = _dim(self._model, name_or_path)
        digest = _digest(self._model)
        self._fingerprint = (
            f"st:{name_or_path}:{digest}{prefixes_mark(query_prefix, passage_prefix)}"
        )
        # The tokenizer keeps the truncation of the call in progress.
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """`st:`, name, 12 digits over configuration and a sample of the weights, prefixes."""
        return self._fingerprint

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    @property
    def tokens_max(self) -> int:
        """Tokens of a text that are read, special ones included."""
        return int(self._model.max_seq_length or _TOKENS_MAX_DEFAULT)

    @property
    def scripts(self) -> frozenset[str]:
        """Scripts that the model reads well, as the settings say."""
        return self._scripts

    def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        """(len(texts), dim) float32 unit vectors."""
        return self._embed(texts, self._passage_prefix)

    def embed_query(self, text: str) -> FloatVector:
        """(dim,) float32 unit vector."""
        vector: FloatVector = self._embed([text], self._query_prefix)[0]
        return vector

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each whole text."""
        return [len(spans) for spans in self.token_spans_batch(texts)]

    def token_spans(self, text: str) -> list[Span]:
        """Character offsets of each token."""
        return self.token_spans_batch([text])[0]

    def token_spans_batch(self, texts: Sequence[str]) -> list[list[Span]]:
        """`token_spans` of each text."""
        if not texts:
            return []
        with self._lock:
            encoded = self._tokenizer(
                [without_surrogates(text) for text in texts],
                add_special_tokens=False,
                return_offsets_mapping=True,
                truncation=False,
                verbose=False,
            )
        return [[(start, end) for start, end in spans] for spans in encoded["offset_mapping"]]

    def _embed(self, texts: Sequence[str], prefix: str) -> FloatMatrix:
        import numpy as np

        if not texts:
            return np.empty((0, self._dim), np.float32)
        chars_max = self.tokens_max * _CHARS_READ_PER_TOKEN
        clean = [without_surrogates(prefix + text)[:chars_max] for text in texts]
        try:
            with self._lock:
                vectors = self._model.encode(
                    clean,
                    batch_size=self._batch,
                    convert_to_numpy=True,
                    normalize_embeddings=True,
                    show_progress_bar=False,
                )
        except Exception as error:
            raise EmbedError(f"the model failed on {len(texts)} texts: {error}") from error
        return checked(vectors, len(texts), self._dim)


def load_model(class_name: str, name_or_path: str, **options: Any) -> Any:
    """A model of one of the library's classes. Raises ModelMissing.

    A name that is a folder in the working directory is refused.
    """
    try:
        import sentence_transformers
    except ImportError as error:
        raise ModelMissing(
            f"sentence-transformers is not installed; run `{install_command('st')}`,"
            " or use the built-in model"
        ) from error
    if not name_or_path:
        raise ModelMissing("sentence-transformers needs a model; give its name or folder")
    if _is_shadowed(name_or_path):
        raise ModelMissing(
            f"{name_or_path} is a model's name and a folder here; start kb elsewhere for the model,"
            f" or give ./{name_or_path} for the folder"
        )
    try:
        # A model is data. kb never runs code that comes with one.
        return getattr(sentence_transformers, class_name)(
            os.path.expanduser(name_or_path), trust_remote_code=False, **options
        )
    except Exception as error:
        raise ModelMissing(
            f"the model {name_or_path} cannot be loaded ({error});"
            " check the name, the folder and the connection"
        ) from error


def _is_shadowed(name: str) -> bool:
    """Whether a folder in the working directory, perhaps a stranger's, would be taken for it.

    A path to a folder begins with `/`, `~` or `.`.
    """
    return not name.startswith(("/", "~", ".")) and os.path.exists(name)


def _fast_tokenizer(model: "SentenceTransformer", name: str) -> Any:
    tokenizer = model.tokenizer
    if not getattr(tokenizer, "is_fast", False):
        raise ModelMissing(f"the tokenizer of {name} gives no offsets; choose another model")
    return tokenizer


def _dim(model: "SentenceTransformer", name: str) -> int:
    # Renamed in sentence-transformers 5.
    ask = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    dim = ask()
    if not dim:
        raise ModelMissing(
            f"the model {name} does not say how long its vectors are; choose another model"
        )
    return int(dim)


def _digest(model: "SentenceTransformer") -> str:
    """12 hex digits over the configuration and the start of each tensor.

    The sample tells a re-trained model in the same folder from the old one.
    """
    digest = hashlib.sha256(f"{model.max_seq_length}".encode())
    for module in model.modules():
        config: Any = getattr(module, "config", None)
        if hasattr(config, "to_dict"):
            hashed_config = {k: v for k, v in config.to_dict().items() if k not in _CONFIG_IGNORED}
            digest.update(repr(sorted(hashed_config.items(), key=lambda item: item[0])).encode())
            break
    for name, tensor in sorted(model.state_dict().items()):
        sample = tensor.detach().flatten()[:_WEIGHTS_SAMPLED].float().cpu().numpy()
        digest.update(name.encode() + sample.tobytes())
    return digest.hexdigest()[:12]
