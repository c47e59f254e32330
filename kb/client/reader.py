"""What the command line reads, as a server answers it."""

import contextlib
from typing import Final

import msgspec

from kb.client.wire import Wire
from kb.home.spaces.answers import Shown, ShownDoc, ShownPassage, SpaceDocs
from kb.home.spaces.reader import Hear
from kb.knowledge.answers import Answer, RawSource
from kb.model.asking import DocsAsked, Found, QuestionAsked, SearchAsked, ShowAsked

# A language model may take its time, and others may be before us.
_ANSWER_S: Final = 600.0


class RemoteReader:
    """One server's home, as its token's user reads it. Raises ServerError where it has no answer.

    Else what it says was asked wrongly, or is not there, is raised as it would be at home.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    @property
    def has_several(self) -> bool:
        """Never: a server has one home."""
        return False

    def search(self, asked: SearchAsked) -> Found:
        """The best passages."""
        return self._wire.post("/v1/cli/search", asked, Found)

    def answer(self, asked: QuestionAsked, *, hear: Hear | None = None) -> Answer:  # noqa: ARG002
        """What the sources say, which comes whole: `hear` is told nothing."""
        return self._wire.post("/v1/cli/ask", asked, Answer, wait_s=_ANSWER_S)

    def sources(self, asked: QuestionAsked) -> tuple[RawSource, ...]:
        """What an answer would be made of."""
        return self._wire.post("/v1/cli/sources", asked, tuple[RawSource, ...])

    def docs(self, asked: DocsAsked) -> SpaceDocs:
        """The docs of a status within limits."""
        return self._wire.post("/v1/cli/docs", asked, SpaceDocs)

    def show(self, ident: str) -> Shown:
        """What an id names."""
        found = self._wire.post("/v1/cli/show", ShowAsked(id=ident), msgspec.Raw)
        with contextlib.suppress(msgspec.ValidationError):
            return msgspec.json.decode(found, type=ShownDoc)
        with contextlib.suppress(msgspec.ValidationError):
            return msgspec.json.decode(found, type=ShownPassage)
        raise self._wire.unreadable()
