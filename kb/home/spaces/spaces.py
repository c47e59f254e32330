"""Several open homes that answer as one."""

import contextlib
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from kb.home.app import App
from kb.home.spaces.agents import ForAgents
from kb.home.spaces.answers import (
    Shown,
    ShownDoc,
    ShownPassage,
    SpaceDoc,
    SpaceDocs,
    SpaceFacets,
)
from kb.home.spaces.asked import FAILURES, FailedSpace, OpenSpace, ask, warnings_of
from kb.home.spaces.having import doc_named, doc_or_passage, having, having_pack
from kb.home.spaces.help import Once, desk_of
from kb.home.spaces.homes import SpaceHome
from kb.home.spaces.merge import merged_entities
from kb.home.spaces.together import Limits, together
from kb.knowledge.answers import Answer, Means, RawSource, raw_sources
from kb.knowledge.answers import ask as answered
from kb.knowledge.topics import Topic
from kb.model.clock import Clock
from kb.model.config import Settings
from kb.model.doc import Scope
from kb.model.search import (
    NO_FILTERS,
    NOTHING_HERE,
    Filters,
    SearchRequest,
    SearchResult,
    SpaceName,
)
from kb.operations import search, search_entities
from kb.operations.ask import AskInput
from kb.operations.budget import rows_fitting
from kb.operations.fields import NO_BUDGET
from kb.operations.kept import PassageInPlace, Status, WholeDoc, kept, kept_docs
from kb.operations.kit import ToolKit
from kb.operations.neighbors import with_neighbors
from kb.operations.search import SearchInput
from kb.operations.search_entities import SearchEntitiesInput, SearchEntitiesOutput
from kb.operations.similar import SimilarInput, bounded
from kb.search.facets import Facets, facets_of, merge_facets
from kb.search.filters import readable_audiences
from kb.store.content.layout import HomePaths

if TYPE_CHECKING:
    from kb.knowledge.guide import Desk


class Spaces:
    """Stores that are read together, each with its own caches; nothing is written to their docs.

    The first one's copy is answered of what several have. A space that cannot be read is left out
    and named in the warnings. Close it, or use it as a context manager; safe to share by threads.
    """

    def __init__(
        self,
        opened: Sequence[OpenSpace],
        failed: Sequence[FailedSpace],
        resources: contextlib.ExitStack,
        core: Callable[[], App] | None = None,
        texts: Callable[[Scope], tuple[Topic, ...]] | None = None,
    ) -> None:
        """`core` opens the home of kb's own entries; without it they are not asked.

        `texts` are topics of a folder whose store is not opened.
        """
        self._opened = tuple(opened)
        self._failed = tuple(failed)
        self._resources = resources
        self._core = core
        self._texts = texts

    @classmethod
    def open(
        cls,
        homes: Sequence[SpaceHome],
        settings_of: Callable[[Path], Settings],
        *,
        clock: Clock | None = None,
        leads: bool = False,
        texts: Callable[[Scope], tuple[Topic, ...]] | None = None,
    ) -> Self:
        """Open the homes that are there; where none is, the first one as an empty one.

        With `leads` the first one is opened in any case, and made where it is not there. A model
        that several of them have is loaded once. Raises the first one's error where every one
        that is there cannot be opened, and with `leads` where the first one cannot.
        """
        opened: list[OpenSpace] = []
        failed: list[FailedSpace] = []
        shared = None
        if len(homes) > 1:
            from kb.home.services.models import SharedModels

            shared = SharedModels()
        with contextlib.ExitStack() as resources:

            def keep(one: SpaceHome, *, create: bool = False) -> None:
                settings = settings_of(one.home)
                app = App.open(one.home, settings, create=create, clock=clock, shared=shared)
                opened.append(OpenSpace(name=one.name, app=resources.enter_context(app)))

            if leads:
                keep(homes[0], create=True)
            for one in homes[len(opened) :]:
                try:
                    HomePaths(one.home).check_not_lost()
                    if HomePaths(one.home).has_store:
                        keep(one)
                except FAILURES as error:
                    failed.append(FailedSpace(name=one.name, error=error))
            if not opened and failed:
                raise failed[0].error
            if not opened:
                keep(homes[0])
            kept = resources.pop_all()

            def own() -> App:
                from kb.home.core import open_core

                return open_core(kept, shared, clock)

            core = Once(own)
            return cls(opened, failed, kept, core, texts)

    def only(self, name: SpaceName) -> "Spaces | None":
        """One of them by itself, which knows nothing of the others; None where it is not read.

        It is open as long as these are: closing it does nothing.
        """
        found = [space for space in self._opened if space.name == name]
        return Spaces(found, [], contextlib.ExitStack(), self._core) if found else None

    @property
    def names(self) -> tuple[SpaceName, ...]:
        """Those that are read, the one that wins first."""
        return tuple(space.name for space in self._opened)

    @property
    def first(self) -> App:
        """The home that wins, and the one that anything new goes to."""
        return self._opened[0].app

    @property
    def has_model(self) -> bool:
        """Whether a question may be put to a language model."""
        return any(space.app.settings.llm.provider != "none" for space in self._opened)

    @functools.cached_property
    def agents(self) -> ForAgents:
        """Texts, lists, packs and topics of all of the spaces."""
        return ForAgents(self._opened, self._failed, self._texts)

    @functools.cached_property
    def toolkit(self) -> ToolKit:
        """What an agent's calls are answered with: all of the spaces together."""
        together = {
            "kb_search": self.search,
            "kb_ask": self.ask,
            "kb_similar": self.similar,
            "kb_search_entities": self.entities,
            **self.agents.tools(),
        }
        return msgspec.structs.replace(
            self.first.toolkit, desk=self.desk, topics=self.agents.topics, together=together
        )

    @functools.cached_property
    def desk(self) -> "Desk":
        """Where help is to be had: entries of every space and kb's own; signals in the first."""
        return desk_of(self._opened, self._core)

    def search(self, request: SearchInput, scope: Scope) -> SearchResult:
        """The best passages of all spaces for a scope.

        Of one space that has docs the answer is its own. Of several they are merged by rank, and
        `score` is the reciprocal of the rank that a hit had in its space. Docs and packs that are
        named are sought where they are. Raises NotFound and AmbiguousId for a doc id, UnknownPack
        and SharedSelector for a pack, and a space's own error where none can answer.
        """
        failed = list(self._failed)
        named = [
            having(self._opened, one, doc_named(one, scope), failed) for one in request.doc_ids
        ]
        packs = [having_pack(self._opened, one, scope, failed) for one in request.packs]

        def answer(space: OpenSpace) -> SearchResult:
            asked = msgspec.structs.replace(
                request,
                doc_ids=tuple(ids[space.name] for ids in named if space.name in ids),
                packs=tuple(ids[space.name] for ids in packs if space.name in ids),
                with_neighbors=False,
            )
            return search.run(space.app.toolkit, asked, scope)

        spaces = [
            space
            for space in self._opened
            if all(not some or any(space.name in ids for ids in some) for some in (named, packs))
        ]
        if not spaces:
            # The docs that are named lie in one space, the packs in the other.
            return search.no_hits(request, warnings_of(failed, scope))
        given = ask(spaces, answer, failed)
        with_docs = [one for one in given if NOTHING_HERE not in one[1].warnings]
        within = SearchRequest(
            query="",
            tags=request.tags,
            kinds=request.kinds,
            sources=request.sources,
            packs=tuple(dict.fromkeys(full for ids in packs for full in ids.values())),
        )
        limits = Limits(
            k=request.k,
            min_score=request.min_score,
            tokens_max=request.max_tokens,
            scope=scope,
            docs=None if named else within,
        )
        result = together(with_docs or given[:1], failed, limits)
        if not request.with_neighbors:
            return result
        kits = {space.name: space.app.toolkit for space in spaces}
        asked = msgspec.structs.replace(within, max_tokens=request.max_tokens)
        return with_neighbors(
            lambda hit: kits[hit.source_space or spaces[0].name], result, asked, scope
        )

    def ask(
        self,
        request: AskInput,
        scope: Scope,
        *,
        with_model: bool = True,
        hear: Callable[[str], None] | None = None,
    ) -> Answer:
        """What the sources of all spaces say to a question.

        The model is that of the first space that has one. Raises what `search` raises.
        """
        found = self.search(request.search, scope)
        apps = [space.app for space in self._opened]
        asked = next((app for app in apps if app.settings.llm.provider != "none"), apps[0])
        means = asked.toolkit.means if with_model else Means()
        return answered(
            request.question, found, means, scope, with_text=request.with_text, hear=hear
        )

    def raw_sources(self, request: AskInput, scope: Scope) -> tuple[RawSource, ...]:
        """What `ask` would answer from, as it stands there. Raises what `search` raises."""
        return raw_sources(self.search(request.search, scope))

    def similar(self, request: SimilarInput, scope: Scope) -> SearchResult:
        """Passages of all spaces that are like what an id names, of whichever space has it.

        Spaces whose passages another model embedded say so and bring none. Raises NotFound and
        AmbiguousId, and a space's own error where none can answer.
        """
        failed = list(self._failed)
        found = having(self._opened, request.id, doc_or_passage(request.id, scope), failed)
        origin = next(space for space in self._opened if space.name in found)
        seed = origin.app.toolkit.searcher().seed(found[origin.name], scope)
        elsewhere = msgspec.structs.replace(seed, warnings=())

        def answer(space: OpenSpace) -> SearchResult:
            kit = space.app.toolkit
            found = kit.searcher().like(seed if space is origin else elsewhere, request.k, scope)
            return bounded(kit, found, request.max_tokens)

        given = ask(self._with_docs(scope, failed), answer, failed)
        limits = Limits(
            k=request.k,
            tokens_max=request.max_tokens,
            scope=scope,
            docs=NO_FILTERS,
        )
        result = together(given, failed, limits)
        return msgspec.structs.replace(result, query=request.id)

    def docs(self, limits: Filters, status: Status, limit: int, scope: Scope) -> SpaceDocs:
        """The docs of a status within the limits, of all spaces; at most `limit`, 0 for all.

        A source that two spaces have is listed in both. Raises UsageError as `kept_docs` does, and
        a space's own error where none can be read.
        """
        failed = list(self._failed)
        given = ask(
            self._opened,
            lambda space: kept_docs(space.app.toolkit, limits, status, limit, scope),
            failed,
        )
        rows = [
            SpaceDoc(space=space.name, **msgspec.structs.asdict(row))
            for space, found in given
            for row in found.docs
        ]
        rows.sort(key=lambda row: (-row.updated_ms, row.source))
        return SpaceDocs(
            docs=tuple(rows[: limit or None]),
            total=sum(found.total for _, found in given),
            warnings=warnings_of(failed, scope),
        )

    def facets(self, values_max: int, scope: Scope) -> SpaceFacets:
        """What a search can be narrowed to, as `kb.search.facets.facets_of` has it in each space.

        Raises a space's own error where none can be read.
        """
        failed = list(self._failed)

        def counted(space: OpenSpace) -> Facets:
            with space.app.store.read() as txn:
                return facets_of(txn, scope, values_max)

        given = ask(self._opened, counted, failed)
        found = merge_facets((one for _, one in given), values_max)
        return SpaceFacets(**msgspec.structs.asdict(found), warnings=warnings_of(failed, scope))

    def show(self, ident: str, scope: Scope) -> Shown:
        """What an id names for a scope, in the first space that has it.

        Raises NotFound, AmbiguousId, and a space's own error where none can be read.
        """
        failed = list(self._failed)
        found: dict[SpaceName, WholeDoc | PassageInPlace] = {}

        def resolve(space: OpenSpace) -> str:
            shown = found[space.name] = kept(space.app.toolkit, ident, scope)
            return shown.doc.doc_id if isinstance(shown, WholeDoc) else shown.passage.chunk_id

        name = next(iter(having(self._opened, ident, resolve, failed)))
        shown, warnings = found[name], warnings_of(failed, scope)
        if isinstance(shown, WholeDoc):
            return ShownDoc(space=name, shown=shown, warnings=warnings)
        return ShownPassage(space=name, shown=shown, warnings=warnings)

    def entities(self, request: SearchEntitiesInput, scope: Scope) -> SearchEntitiesOutput:
        """The first entities whose name starts so, counted by what the scope sees in each space.

        Raises a space's own error where none can be read.
        """
        failed = list(self._failed)
        whole = msgspec.structs.replace(request, max_tokens=NO_BUDGET)
        given = ask(
            self._opened,
            lambda space: search_entities.run(space.app.toolkit, whole, scope),
            failed,
        )
        found = list(merged_entities(each.entities for _, each in given))
        shown = found[: request.limit]
        shown = shown[: rows_fitting(shown, request.max_tokens)]
        return SearchEntitiesOutput(
            entities=tuple(shown),
            more=len(shown) < len(found) or any(each.more for _, each in given),
            warnings=warnings_of(failed, scope),
        )

    def _with_docs(self, scope: Scope, failed: list[FailedSpace]) -> list[OpenSpace]:
        """The spaces that have docs for a scope; the first one where none has."""

        def has_docs(space: OpenSpace) -> bool:
            with space.app.store.read() as txn:
                return bool(readable_audiences(txn, scope))

        given = ask(self._opened, has_docs, failed)
        return [space for space, has_any in given if has_any] or [given[0][0]]

    def close(self) -> None:
        """Close every home."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
