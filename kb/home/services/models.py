"""Which model is asked, and where are its vectors? What the store says, opened once and kept."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kb.errors import ModelMissing
from kb.intake.embed.factory import SERVED, make_embedder
from kb.intake.embed.protocol import Embedder
from kb.model.config import Settings
from kb.model.embedder import EmbedderChoice, EmbedderSet, EmbedderSpec, EmbedServer
from kb.store import embedders
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.intake.embed.protocol import FloatVector
    from kb.model.config import RerankSettings
    from kb.search.backends import DenseBackend
    from kb.search.rerank.scores import Reranker


class SharedModels:
    """Models that several homes may have: each is loaded once, whichever homes ask for it.

    The last query's vector is kept, so that homes which are asked the same embed it once. Any
    number of threads may ask.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[EmbedderChoice, int, EmbedServer | None], Embedder] = {}
        self._last: tuple[Embedder, str, FloatVector] | None = None
        self._rerankers: dict[tuple[str, str, int], Reranker] = {}
        self._lock = threading.Lock()

    def made(
        self, choice: EmbedderChoice, threads: int, server: EmbedServer | None = None
    ) -> Embedder:
        """The model that a choice names, as `make_embedder` makes it. Raises ModelMissing."""
        key = choice, threads, server
        with self._lock:
            embedder = self._made.get(key)
            if embedder is None:
                embedder = self._made[key] = make_embedder(*key)
            return embedder

    def reranker(self, settings: "RerankSettings", threads: int) -> "Reranker":
        """The reranker that settings name, loaded; `threads` as in `made`. Raises ModelMissing."""
        from kb.search.rerank.rerankers import make_reranker

        key = settings.kind, settings.model, threads
        with self._lock:
            if key not in self._rerankers:
                self._rerankers[key] = make_reranker(settings, threads)
            return self._rerankers[key]

    def embed_query(self, embedder: Embedder, text: str) -> "FloatVector":
        """What `Embedder.embed_query` gives, of the last text without asking the model again."""
        last = self._last
        if last is not None and last[0] is embedder and last[1] == text:
            return last[2]
        vector = embedder.embed_query(text)
        self._last = embedder, text, vector
        return vector


class HomeModels:
    """Opens the models of one home; any number of threads may ask.

    The settings name the model that a home begins with. From then on the home's own choice holds
    until another is made, so that no call with other settings can mix two models or start over.
    """

    def __init__(
        self,
        store: Store,
        dense_folder: Path,
        settings: Settings,
        shared: SharedModels | None = None,
    ) -> None:
        self._store = store
        self._dense_folder = dense_folder
        self._settings = settings
        self._shared = shared or SharedModels()
        self._active: DenseBackend | None = None
        self._known: tuple[int, EmbedderSet | None] | None = None
        """The stored models at a commit."""
        self._lock = threading.RLock()

    def in_use(self, commit: int | None = None) -> EmbedderSet:
        """The home's models, now or at a commit that the caller has seen.

        A home that has none would begin with what the settings ask for.
        """
        known = self._known
        if known is None or known[0] != commit:
            with self._store.read() as txn:
                known = self._known = txn.last_txn(), embedders.in_use(txn)
        if known[1] is not None:
            return known[1]
        choice = self.asked()
        return EmbedderSet(active=self.described(choice), settings=choice)

    def active(self, commit: int | None = None) -> "DenseBackend":
        """The model that searches use, with its cache of vectors, now or at a commit already seen.

        Raises ModelMissing where it is not there, or is not the one that embedded the chunks.
        """
        with self._lock:
            in_use = self.in_use(commit)
            embedder = self._opened(in_use.active)
            if self._active is None or self._active.index.fingerprint != embedder.fingerprint:
                # A search that still runs may hold the one before: it is let go, not closed.
                warning = self._warning(in_use)
                self._active = self._backend(self._dense_folder, embedder, warning)
            return self._active

    def embedder(self) -> Embedder:
        """The model in use, without its cache of vectors. Raises ModelMissing as `active`."""
        with self._lock:
            return self._opened(self.in_use().active)

    @contextmanager
    def tried(self, choice: EmbedderChoice) -> "Iterator[DenseBackend]":
        """Another model with vectors of all chunks that there are now, to be compared.

        It embeds what has no vector of this model yet. Its index is removed at the end, since the
        log will not tell of these vectors. Raises ModelMissing or EmbedError.
        """
        import tempfile

        from kb.intake.worker.trial import embed_all

        embedder = self._made(choice)
        if embedder.fingerprint == self.in_use().active.fingerprint:
            yield self.active()
            return
        embed_all(self._store, embedder)
        with tempfile.TemporaryDirectory() as folder:
            backend = self._backend(Path(folder), embedder)
            yield backend
            backend.index.close()

    def embed_query(self, embedder: Embedder, text: str) -> "FloatVector":
        """The vector of a query, (dim,) float32 of length 1. Raises ModelMissing or EmbedError."""
        return self._shared.embed_query(embedder, text)

    def reranker(self, settings: "RerankSettings") -> "Reranker":
        """The reranker that settings name, loaded. Raises ModelMissing."""
        return self._shared.reranker(settings, self._settings.embed.threads)

    def next(self) -> Embedder | None:
        """The model whose vectors are being made, or None. Raises ModelMissing."""
        with self._lock:
            described = self.in_use().next
            return self._opened(described) if described else None

    def described(self, choice: EmbedderChoice) -> EmbedderSpec:
        """What a choice names now. Raises ModelMissing where it names nothing."""
        embedder = self._made(choice)
        return EmbedderSpec(choice=choice, fingerprint=embedder.fingerprint, dim=embedder.dim)

    def change_to(self, choice: EmbedderChoice | None) -> EmbedderSet:
        """Start a set of vectors of another model; None means what the settings ask for.

        Searches go on with the model in use until the pool has made the whole set. Raises
        ModelMissing where the choice names no model.
        """
        from kb.intake.worker.embedders import begin_change
        from kb.search.index.dense_files import folder_name, remove_vectors

        described = self.described(choice or self.asked())
        if described.fingerprint != self.in_use().active.fingerprint:
            # What is there of an earlier time was not told of what changed since.
            remove_vectors(self._dense_folder / folder_name(described.fingerprint))
        return begin_change(self._store, described, self.asked())

    def asked(self) -> EmbedderChoice:
        """The model that the settings ask for."""
        embed = self._settings.embed
        return EmbedderChoice(
            kind=embed.kind,
            model=embed.model,
            query_prefix=embed.query_prefix,
            passage_prefix=embed.passage_prefix,
            scripts=embed.scripts,
        )

    def close(self) -> None:
        """Let go of the files."""
        if self._active is not None:
            self._active.index.close()

    def _backend(
        self, folder: Path, embedder: Embedder, warning: str | None = None
    ) -> "DenseBackend":
        from kb.search.backends import DenseBackend
        from kb.search.index.dense import DenseIndex

        index = DenseIndex(
            folder,
            embedder.fingerprint,
            embedder.dim,
            mode=self._settings.index.dense_mode,
            crossover_rows=self._settings.index.crossover_rows,
        )
        return DenseBackend(embedder=embedder, index=index, warning=warning)

    def _opened(self, spec: EmbedderSpec) -> Embedder:
        embedder = self._made(spec.choice, spec.dim)
        if embedder.fingerprint != spec.fingerprint:
            raise ModelMissing(
                f"the passages were embedded by {spec.fingerprint}, but {_name(spec.choice)} is "
                f"{embedder.fingerprint} now; put the old model back, or run `kb embedder set`"
            )
        return embedder

    def _made(self, choice: EmbedderChoice, dim: int = 0) -> Embedder:
        """With the length of its vectors, if it is known, a server's model need not be asked."""
        embed = self._settings.embed
        if choice.kind not in SERVED:
            return self._shared.made(choice, embed.threads)
        server = EmbedServer(
            base_url=embed.base_url,
            timeout_s=embed.timeout_s,
            tries=embed.tries,
            tokens_max=embed.tokens_max,
            dim=dim,
        )
        return self._shared.made(choice, embed.threads, server)

    def _warning(self, stored: EmbedderSet) -> str | None:
        choice = self.asked()
        if choice in (stored.settings, *(retained.choice for retained in stored.retained)):
            return None
        return (
            f"the settings ask for the model {_name(choice)}, but this home is embedded by "
            f"{_name(stored.active.choice)}; `kb embedder set` changes it"
        )


def _name(choice: EmbedderChoice) -> str:
    return choice.model or ("the built-in one" if choice.kind == "onnx" else choice.kind)
