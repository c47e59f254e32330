"""The models that embed the chunks of an open home: which are in use, and changing them."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.intake.embed.factory import SERVED
from kb.model.embedder import EmbedderChoice
from kb.model.entry_points import installed

if TYPE_CHECKING:
    from kb.home.app import App

_BUILTIN: Final = "builtin"
_HASHING: Final = "hashing"
_MULTILINGUAL: Final = "multilingual"
_ONNX: Final = "onnx:"
_ST: Final = "sentence-transformers:"


class Embedders(Struct, frozen=True, kw_only=True):
    """The models of a home, by fingerprint."""

    active: str
    next: str | None
    """Its vectors are being made; searches use it once all are there."""
    docs_left: int
    """Docs that the next model still has to embed."""
    previous: str | None
    """What `kb embedder set --rollback` brings back."""


class ChangeEmbedderRequest(Struct, frozen=True, kw_only=True):
    """The model that is wanted; without one that of the settings."""

    model: str | None = None
    """`builtin`, `multilingual`, a folder, `ollama:NAME` or `openai:NAME` of a server, or a
    sentence-transformers name."""
    query_prefix: str = ""
    passage_prefix: str = ""
    scripts: tuple[str, ...] = ()
    """The scripts that the model reads; none means all."""


def list_embedders(app: "App") -> Embedders:
    """The models of a home; one that has none would begin with what the settings ask for."""
    from kb.store.jobs import queue

    models = app.models.in_use()
    with app.store.read() as txn:
        left = queue.count_of_kind(txn, "reembed") if models.next else 0
    return Embedders(
        active=models.active.fingerprint,
        next=models.next.fingerprint if models.next else None,
        docs_left=left,
        previous=models.previous.fingerprint if models.previous else None,
    )


def change_embedder(app: "App", request: ChangeEmbedderRequest) -> None:
    """Have every chunk embedded by another model; that work is still to be done by workers.

    Searches go on with the model in use until the last chunk is embedded. Raises ModelMissing
    where the request names no model that is there.
    """
    app.models.change_to(choice_of(request) if request.model else None)


def roll_back(app: "App") -> None:
    """Stop a change of the model, or where none goes on, undo the last one.

    Raises UsageError where there is nothing to go back to.
    """
    from kb.intake.worker import embedders

    embedders.roll_back(app.store)


def choice_of(request: ChangeEmbedderRequest) -> EmbedderChoice:
    """What a person's word for a model means; that there is such a model is not looked at."""
    model = request.model or ""
    prefixed = partial(
        EmbedderChoice,
        query_prefix=request.query_prefix,
        passage_prefix=request.passage_prefix,
    )
    folder = Path(model.removeprefix(_ONNX)).expanduser()
    if model == _HASHING:
        return EmbedderChoice(kind="hashing")
    if model == _BUILTIN:
        return prefixed(kind="onnx")
    if model == _MULTILINGUAL:
        return prefixed(kind=_MULTILINGUAL)
    if model.startswith(_ONNX) or (folder / "model.json").is_file():
        return prefixed(kind="onnx", model=str(folder.absolute()))
    kind, _, inner = model.partition(":")
    if kind in SERVED or kind in {plugin.name for plugin in installed("kb.embedders")}:
        return prefixed(kind=kind, model=inner, scripts=request.scripts)
    name = model.removeprefix(_ST)
    place = Path(name).expanduser()
    if place.is_dir():
        name = str(place.absolute())
    return prefixed(kind="sentence-transformers", model=name, scripts=request.scripts)
