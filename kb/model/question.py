"""Questions of which somebody has said what answers them."""

from msgspec import Struct

from kb.model.ids import Lsid


class AnsweredQuestion(Struct, frozen=True, kw_only=True):
    """A question, and the source that answers it; several if there is a record for each."""

    query: str
    place: Lsid
    added_ms: int
