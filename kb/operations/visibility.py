"""Who may see a doc of an open home, said anew."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import NotFound
from kb.model import doc

if TYPE_CHECKING:
    from kb.home.app import App

Visibility = doc.Visibility
VISIBILITIES: Final = doc.VISIBILITIES


class SetVisibilityRequest(Struct, frozen=True, kw_only=True):
    """A doc or an entry, by its id or path, and who may see it from now on."""

    ident: str
    visibility: Visibility


class SetVisibilityResult(Struct, frozen=True, kw_only=True):
    """Who may see a doc now."""

    doc_id: str
    visibility: str
    owner: str
    transaction: str | None = None
    """The token of a state of the home in which that is so."""


def run(app: "App", request: SetVisibilityRequest) -> SetVisibilityResult:
    """Say who may see a doc; searches follow at once.

    Raises NotFound, also for a doc that the caller does not see, NotYours, AmbiguousId, UsageError
    for a doc of a topic, whose settings say it, and ReadOnlyHome.
    """
    from kb.intake.ingest.changes import set_visibility
    from kb.operations.entries import own_doc

    with app.store.read() as txn:
        doc_id = own_doc(txn, request.ident, app.caller, app.store.machine).doc_id
    changed = set_visibility(app.store, doc_id, request.visibility)
    if changed is None:
        raise NotFound(id=request.ident)
    return SetVisibilityResult(
        doc_id=changed.doc_id,
        visibility=changed.visibility,
        owner=changed.owner,
        transaction=app.transactions.token(),
    )
