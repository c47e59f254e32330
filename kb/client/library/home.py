"""One object to ask, fill and follow homes on this machine."""

# Long because each method says what it takes, what it gives and what it raises.

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Self, Unpack

from kb.client.library.calls import HomeCalls
from kb.client.library.keywords import (
    AddKeywords,
    AskKeywords,
    EventsKeywords,
    FilterKeywords,
    GetKeywords,
    ListKeywords,
    SearchKeywords,
    SimilarKeywords,
    SyncKeywords,
    request_of,
)
from kb.client.library.opened import OpenedHomes
from kb.client.library.streams import flat, followed
from kb.errors import UsageError
from kb.model.source import STDIN_NAME

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.home.open_home import OpenHome
    from kb.home.spaces.spaces import Spaces
    from kb.model.doc import Scope
    from kb.model.search import SearchResult
    from kb.operations.add import AddRequest, AddResult
    from kb.operations.ask import Answer
    from kb.operations.contents import EmbeddedPassage
    from kb.operations.docs import DocRow, Docs
    from kb.operations.events import Event
    from kb.operations.fetch import FetchedText
    from kb.operations.remove import RemoveResult
    from kb.operations.stats import StatsResult
    from kb.operations.sync import SyncResult
    from kb.operations.work import CaughtUp

Place = str | os.PathLike[str]


def open(  # noqa: A001  it is called so: kb.open
    path: Place | None = None, *, settings: Mapping[str, Any] | None = None
) -> "Home":
    """Open a home, or those that the command line would open here.

    Args:
        path: The folder of a home; nothing need be there, and reading makes nothing. None means
            what the command line means without `--home`: KB_HOME, else the project's home with
            the user's, asked together; anything new goes to the first of them.
        settings: Settings by their whole names, as `{"search.k": 5}`, which win over those of
            files and of the environment.

    Raises:
        kb.errors.ConfigError: A setting is unknown or has a wrong value.
        kb.errors.HeldBack: This user's kb did not make the home, and they did not accept it.
        kb.errors.StoreDamaged: The store cannot be read, or is missing and was there.
        kb.errors.UsageError: The path is empty, or a server is named and no path.
    """
    return Home(path, settings=settings)


class Home:
    """A home on this machine, held open: what `kb.open` gives.

    Any number of threads may share one, and any number of processes may have the same home open:
    commands, a server, other programs. Results are the records that commands print with `--json`.
    A method raises TypeError for a keyword that it does not have, and a class of `kb.errors` for
    everything else. Use it as a context manager, or close it; after that every call raises
    `kb.errors.HomeClosed`.
    """

    def __init__(
        self, path: Place | None = None, *, settings: Mapping[str, Any] | None = None
    ) -> None:
        """As `kb.open`."""
        named = None if path is None else os.fspath(path)
        if named == "":
            raise UsageError("the path of the home is empty; None means the home of this user")
        if not isinstance(settings, Mapping | None):
            raise UsageError("settings: a mapping of whole names, as {'search.k': 5}")
        self._homes = OpenedHomes(named, settings or MappingProxyType({}))
        self._calls = HomeCalls(str(self._homes.path))

    @property
    def path(self) -> Path:
        """The folder of the home; of several, the one that anything new goes to."""
        return self._homes.path

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out when it was opened, and why: a home that does not count, a setting."""
        return self._homes.warnings

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, or is about to be."""
        return self._calls.is_closed

    def search(self, query: str, **keywords: Unpack[SearchKeywords]) -> "SearchResult":
        """Find passages by words and by meaning; the result iterates over its hits, best first.

        Args:
            query: A question, or words that a passage should hold.
            **keywords: `k` hits at most (10). Which docs: `tags`, `kinds`, `doc_ids`, `packs`,
                `sources`, `since`, `until`. How: `mode` ("hybrid", "lexical" or "dense"),
                `require_entities`, `boost_entities`, `min_score`, `with_neighbors`, `max_tokens`,
                `verbatim`, `rerank`, `explain`, `marks`.

        Raises:
            kb.errors.NotFound: Nothing has one of the `doc_ids` or `packs`.
            kb.errors.ModelMissing: `rerank` is true, and the settings name no reranker.
            kb.errors.UsageError: A value is wrong, or a short id names several docs.
        """
        from kb.operations.search import ShownSearch, run

        request = request_of(ShownSearch, "search", keywords, query=query)
        with self._calls.call():
            spaces = self._homes.spaces()
            return run(spaces, request, spaces.caller)

    def ask(
        self,
        question: str,
        *,
        hear: Callable[[str], None] | None = None,
        **keywords: Unpack[AskKeywords],
    ) -> "Answer":
        """Answer a question from the passages, each sentence with its sources.

        A language model writes the answer where settings name one; else it is sentences of the
        sources, and `kind` says "extracts".

        Args:
            question: As one would ask a person.
            hear: Is told the parts of a model's answer as they come.
            **keywords: `k` passages are read (6), with about `max_tokens` together; `with_text`,
                `with_model`, and which docs, as in `search`.

        Raises:
            kb.errors.UsageError: A value is wrong.
        """
        from kb.operations.ask import AskRequest, run

        request = request_of(AskRequest, "ask", keywords, "hear", question=question)
        with self._calls.call():
            spaces = self._homes.spaces()
            return run(spaces, request, spaces.caller, hear=hear)

    def get(self, named: Place, **keywords: Unpack[GetKeywords]) -> "FetchedText":
        """The text of a doc or a passage, whole unless keywords say otherwise.

        Args:
            named: A doc's or a passage's id, whole or its start; an entry's id; or where a doc is
                from, as `source` says it or as a path from here.
            **keywords: Of a doc `start` and `end`, or `page`; of a passage how many `neighbours`
                on either side come along (0); `max_tokens`.

        Raises:
            kb.errors.NotFound: Nothing here has the id or is from there.
            kb.errors.UsageError: A value is wrong, or a short id names several things.
        """
        from kb.operations.fetch import FetchRequest, run

        with self._calls.call():
            spaces = self._homes.spaces()
            ident = _id(spaces, named)
            request = request_of(FetchRequest, "get", _alone(ident, keywords), id=ident)
            return run(spaces, request, spaces.caller)

    def list(self, **keywords: Unpack[ListKeywords]) -> "Docs":
        """List docs, the newest change first; the result iterates over them.

        Args:
            **keywords: `limit` docs at most (50; 0 for all), of a `status` ("active"), and which
                docs, as in `search`.

        Raises:
            kb.errors.NotFound: Nothing has one of the `doc_ids` or `packs`.
            kb.errors.UsageError: A value is wrong.
        """
        from kb.operations.docs import DocsRequest, run

        request = request_of(DocsRequest, "list", keywords)
        with self._calls.call():
            spaces = self._homes.spaces()
            return run(spaces, request, spaces.caller)

    def similar(self, named: Place, **keywords: Unpack[SimilarKeywords]) -> "SearchResult":
        """Find passages of other docs that are near in meaning to a doc or a passage.

        Args:
            named: A doc or a passage, as in `get`.
            **keywords: `k` passages at most (10), `max_tokens`.

        Raises:
            kb.errors.NotFound: Nothing here has the id or is from there.
            kb.errors.UsageError: A value is wrong, or a short id names several things.
        """
        from kb.operations.similar import SimilarRequest, run

        with self._calls.call():
            spaces = self._homes.spaces()
            request = request_of(SimilarRequest, "similar", keywords, id=_id(spaces, named))
            return run(spaces, request, spaces.caller)

    def add(
        self,
        *sources: Place,
        text: str | None = None,
        recursive: bool = True,
        wait: bool = True,
        **keywords: Unpack[AddKeywords],
    ) -> "AddResult":
        """Take in files, folders, addresses or a text; the home is made where it is not there.

        A source that fails stops no other and raises nothing: the result counts it as `failed`,
        and `problems` say why.

        Args:
            *sources: Files, folders with all below them, and addresses (`https://...`).
            text: Markdown or plain text, instead of sources.
            recursive: False takes no folders: one among the sources is a wrong value then.
            wait: Return when all that is to do in the home is done, so that searches find it.
                Without it the passages are made by whoever works next: `work`, a later `add`, a
                `kb serve` or a `kb worker`.
            **keywords: `extensions` to take from folders, `title` and `tags` for the
                docs, their `visibility`, `dry_run`, `accept_deletions` of mails that are gone; with
                `crawl` the addresses are starts of sites, whose pages `include`, `exclude`,
                `pages_max` and `depth_max` choose.

        Raises:
            kb.errors.UsageError: A value is wrong, or there is nothing to add.
            kb.errors.StoreFull: The disk has no room; what is committed stays.
            kb.errors.ReadOnlyHome: The home cannot be written.
        """
        from kb.operations import add

        request = request_of(add.AddRequest, "add", keywords, "text", "recursive", "wait")
        names = [os.fspath(source) for source in sources]
        if (text is None) == (not names) or STDIN_NAME in names:
            raise UsageError("give either sources or a text; there is no standard input here")
        add.check_title(request, names, "title")
        if not recursive and (folders := add.folders_among(names)):
            raise UsageError(f"{folders[0]} is a folder, and recursive=False takes none")
        wait = wait and not request.dry_run
        with self._calls.call(), add.text_source("" if text is None else text) as file:
            app = self._homes.app(create=not request.dry_run)
            return _added(app, request, names or [STDIN_NAME], file, wait=wait)

    def sync(self, **keywords: Unpack[SyncKeywords]) -> "SyncResult":
        """Bring the folders and pages that were added level with what they are now.

        A source that fails or is held back stops no other: the result says so of each.

        Args:
            **keywords: Only sources that were not synced for `interval_min` minutes (20), at most
                `sources_max`; or `only` one, by its id or place. `accept_deletions` removes docs
                however many have vanished; `dry_run`.

        Raises:
            kb.errors.NotFound: No source is what `only` names.
            kb.errors.UsageError: A value is wrong.
        """
        from kb.operations import sync
        from kb.operations.jobs import jobs_left
        from kb.operations.work import workers_if

        request = request_of(sync.SyncRequest, "sync", keywords)
        with self._calls.call():
            app = self._homes.app(create=not request.dry_run)
            with workers_if(app, wanted=not request.dry_run) as workers:
                result = sync.run(app, request)
                if workers is not None and jobs_left(app):
                    workers.drain()
                    workers.catch_up()
            return result

    def work(self) -> "CaughtUp":
        """Do what is still to do, as `add(wait=False)` leaves it, and return when that is done.

        Raises:
            kb.errors.StoreFull: The disk has no room.
            kb.errors.ModelMissing: The model that embeds here is not there.
        """
        from kb.operations.work import Workers

        with self._calls.call(), Workers(self._homes.app(create=True)) as workers:
            workers.drain()
            return workers.catch_up()

    def remove(self, *named: Place, tag: str | None = None) -> "RemoveResult":
        """Remove docs; they are found no more, and the same source added again brings one back.

        Args:
            *named: Docs, as in `get`.
            tag: Every doc that has it, instead.

        Raises:
            kb.errors.NotFound: One of them is not here; then none is removed.
            kb.errors.UsageError: A short id names several docs, or nothing is named.
        """
        from kb.operations import remove

        if (tag is None) == (not named):
            raise UsageError("name either docs or a tag")
        with self._calls.call():
            app = self._homes.app()
            homes = (app.opened(),)
            idents = tuple(_id_in(homes, one, app.caller) for one in named)
            return remove.run(app, remove.chosen(app, idents, tag))

    def stats(self) -> "StatsResult":
        """Count docs, passages, vectors, jobs and bytes of the home that anything new goes to.

        Raises:
            kb.errors.ModelMissing: The model that embeds here is not there.
        """
        from kb.operations import stats

        with self._calls.call():
            return stats.run(self._homes.app())

    def docs(self, **keywords: Unpack[FilterKeywords]) -> "Iterator[DocRow]":
        """Iterate over all docs, in the order in which they first came in.

        They are read a few hundred at a time: none comes twice, and one that is added or removed
        meanwhile may be among them.

        Args:
            **keywords: Which docs, as in `search`.

        Raises:
            kb.errors.NotFound: Nothing has one of the `doc_ids` or `packs`.
            kb.errors.UsageError: A value is wrong.
        """
        from kb.model.search import Filters
        from kb.operations.contents import doc_batches

        filters = request_of(Filters, "docs", keywords)
        with self._calls.call():
            spaces = self._homes.spaces()
            return flat(self._calls, doc_batches(spaces, filters, spaces.caller))

    def passages(self, **keywords: Unpack[FilterKeywords]) -> "Iterator[EmbeddedPassage]":
        """Iterate over all passages with their vectors, doc by doc in reading order.

        A vector is a numpy array of float32 and of length 1, not to be written to; None where it
        is not made yet. They are read as `docs` are, so that memory stays bounded.

        Args:
            **keywords: Which docs, as in `search`.

        Raises:
            kb.errors.NotFound: Nothing has one of the `doc_ids` or `packs`.
            kb.errors.UsageError: A value is wrong.
        """
        from kb.model.search import Filters
        from kb.operations.contents import passage_batches

        filters = request_of(Filters, "passages", keywords)
        with self._calls.call():
            spaces = self._homes.spaces()
            return flat(self._calls, passage_batches(spaces, filters, spaces.caller))

    def events(
        self, *, timeout_s: float | None = None, **keywords: Unpack[EventsKeywords]
    ) -> "Iterator[Event]":
        """Follow docs, jobs or the queue: each is told as it stands, and again as it changes.

        Of docs and jobs it ends when all of them have come to their end; of the queue, which is
        followed where none is named, it never does. It ends, too, when the home is closed.

        Args:
            timeout_s: End after so many seconds.
            **keywords: Ids of jobs as `job`, ids of docs as `doc`.

        Raises:
            kb.errors.NotFound: No doc or job has an id.
            kb.errors.UsageError: A value is wrong.
        """
        from kb.operations.events import EventsRequest, Following

        request = request_of(EventsRequest, "events", keywords, "timeout_s")
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        with self._calls.call():
            following = Following(self._homes.app, request, self._homes.spaces().caller)
        return followed(self._calls, following, end_s)

    def close(self) -> None:
        """Close it when the calls that run in other threads have come to their end.

        A second call does nothing. Raises UsageError inside one of its own calls.
        """
        if self._calls.close():
            self._homes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<kb.Home {self.path}{' (closed)' if self.is_closed else ''}>"


def _id(spaces: "Spaces", named: Place) -> str:
    return _id_in(spaces.homes, named, spaces.caller)


def _id_in(homes: "Sequence[OpenHome]", named: Place, caller: "Scope") -> str:
    from kb.operations.locate import id_named, place_from_here

    return id_named(homes, place_from_here(os.fspath(named)), caller)


def _alone(ident: str, keywords: GetKeywords) -> GetKeywords:
    """The keywords with which a chunk comes without its neighbours, unless they are wanted."""
    from kb.operations.fetch import CHUNK_ID

    is_passage = CHUNK_ID.fullmatch(ident) is not None
    return {"neighbours": 0, **keywords} if is_passage else keywords


def _added(
    app: "App", request: "AddRequest", names: "list[str]", stdin: IO[bytes], *, wait: bool
) -> "AddResult":
    from kb.operations import add
    from kb.operations.work import workers_if

    with add.adder(app, request) as adder, workers_if(app, wanted=wait) as workers:
        result = adder.add(names, stdin_fd=stdin.fileno())
        if workers is not None:
            workers.drain()
            workers.catch_up()
    if workers is not None:
        result = add.with_failed_jobs(app, result)
    return result if request.dry_run else add.with_transaction(app, result)
