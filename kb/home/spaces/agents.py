"""Texts, lists, packs and topics of several spaces, as the tools of agents ask for them."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from kb.home.spaces.answers import ListedInSpace, SpaceListing, SpaceText
from kb.home.spaces.asked import FailedSpace, OpenSpace, ask, warnings_of
from kb.home.spaces.having import having, having_pack, text_named
from kb.knowledge.topics import Topic
from kb.model.doc import Scope
from kb.model.search import SpaceName
from kb.operations import fetch, list_docs, packs
from kb.operations.fetch import FetchInput, FetchOutput
from kb.operations.kit import ToolKit
from kb.operations.list_docs import ListDocsInput, ListDocsOutput, Matches
from kb.operations.packs import (
    PackListInput,
    PackListOutput,
    PackNeighborsOutput,
    PackReadOutput,
    PackSearchOutput,
)

logger = logging.getLogger(__name__)
Warned = TypeVar(
    "Warned", FetchOutput, PackListOutput, PackReadOutput, PackSearchOutput, PackNeighborsOutput
)


class ForAgents:
    """Spaces in the order of precedence: of what several have, that of the first is answered."""

    def __init__(
        self,
        opened: Sequence[OpenSpace],
        failed: Sequence[FailedSpace],
        texts: Callable[[Scope], tuple[Topic, ...]] | None = None,
    ) -> None:
        """`texts` are topics of a folder whose store is not open; of one id they come last."""
        self._opened = tuple(opened)
        self._failed = tuple(failed)
        self._texts = texts

    def tools(self) -> Mapping[str, Callable[[Any, Scope], Struct]]:
        """What answers a tool, by the tool's name."""
        return {
            "kb_fetch": self.fetch,
            "kb_list_docs": self.list_docs,
            "kb_pack_list": self.pack_list,
            "kb_pack_read": self._in_pack(packs.run_read),
            "kb_pack_search": self._in_pack(packs.run_search),
            "kb_pack_neighbors": self._in_pack(packs.run_neighbors),
        }

    def fetch(self, request: FetchInput, scope: Scope) -> FetchOutput:
        """The text that an id names, of the first space that has it.

        Raises what that raises, and a space's own error where only that one could tell.
        """
        return self._fetched(request, scope)[1]

    def text(self, request: FetchInput, scope: Scope) -> SpaceText:
        """As `fetch`, and which space it is of."""
        space, given = self._fetched(request, scope)
        return SpaceText(**msgspec.structs.asdict(given), space=space.name)

    def _fetched(self, request: FetchInput, scope: Scope) -> tuple[OpenSpace, FetchOutput]:
        failed = list(self._failed)
        found = having(self._opened, request.id, text_named(request.id, scope), failed)
        space = self._first_of(found)
        given = fetch.run(space.app.toolkit, request, scope)
        return space, _with(given, warnings_of(failed, scope))

    def list_docs(self, request: ListDocsInput, scope: Scope) -> ListDocsOutput:
        """A page of the docs of all spaces, as `kb.operations.list_docs` has it.

        Raises a space's own error where none can be read.
        """
        return self._listed(request, scope)[0]

    def listing(self, request: ListDocsInput, scope: Scope) -> SpaceListing:
        """As `list_docs`, and which space each doc is of."""
        page, given = self._listed(request, scope)
        shown = {row.doc_id for row in page.docs}
        # Of an id that several have the row is the first one's.
        spaces: dict[str, SpaceName] = {
            doc.doc_id: space.name
            for space, found in reversed(given)
            for doc in found.docs
            if doc.doc_id in shown
        }
        rows = tuple(
            ListedInSpace(**msgspec.structs.asdict(row), space=spaces[row.doc_id])
            for row in page.docs
        )
        return SpaceListing(**{**msgspec.structs.asdict(page), "docs": rows})

    def _listed(
        self, request: ListDocsInput, scope: Scope
    ) -> tuple[ListDocsOutput, Sequence[tuple[OpenSpace, Matches]]]:
        failed = list(self._failed)
        given = ask(
            self._opened,
            lambda space: list_docs.matches(space.app.toolkit, request, scope),
            failed,
        )
        homes = [found for _, found in given]
        return list_docs.page_of(homes, request, warnings_of(failed, scope)), given

    def pack_list(self, request: PackListInput, scope: Scope) -> PackListOutput:
        """The docs of a pack, or the packs of all spaces by id. Raises as `having_pack` does."""
        if request.pack is not None:
            return self._in_pack(packs.run_list)(request, scope)
        failed = list(self._failed)
        given = ask(self._opened, lambda space: packs.seen(space.app.toolkit, scope), failed)
        found = {one.pack_id: one for _, seen in reversed(given) for one in seen}
        rows = [found[pack_id] for pack_id in sorted(found)]
        return packs.page_of(rows, request, warnings_of(failed, scope))

    def topics(self, scope: Scope) -> tuple[Topic, ...]:
        """What a scope can learn in all spaces; of one id that two have the earlier space's.

        Raises ConfigError where it can be told of none.
        """
        failed: list[FailedSpace] = []
        given = ask(self._opened, lambda space: space.app.topics(scope), failed)
        if failed:
            logger.info("the topics of a space cannot be read, and are left out")
        found: dict[str, Topic] = {}
        for topics in (*(each for _, each in given), self._texts(scope) if self._texts else ()):
            for topic in topics:
                found.setdefault(topic.id, topic)
        return tuple(found.values())

    def _in_pack(
        self, run: Callable[[ToolKit, Any, Scope], Warned]
    ) -> Callable[[Any, Scope], Warned]:
        """Has `run` answer in the first space that has the pack, by the pack's id."""

        def answer(request: Any, scope: Scope) -> Warned:
            failed = list(self._failed)
            found = having_pack(self._opened, request.pack, scope, failed)
            space = self._first_of(found)
            asked = msgspec.structs.replace(request, pack=found[space.name])
            return _with(run(space.app.toolkit, asked, scope), warnings_of(failed, scope))

        return answer

    def _first_of(self, found: Mapping[Any, str]) -> OpenSpace:
        return next(space for space in self._opened if space.name in found)


def _with(given: Warned, warnings: tuple[str, ...]) -> Warned:
    if not warnings:
        return given
    return msgspec.structs.replace(given, warnings=(*warnings, *given.warnings))
