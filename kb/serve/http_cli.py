"""`/v1/cli/`: what the command line asks of a server, answered whole.

Each route takes and gives what the command asks of homes on its own machine, so that it prints the
same. The bounds of tools do not hold here; those of bodies and of requests at once do.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from kb.errors import NotFound
from kb.home.spaces.answers import Shown, ShownDoc, ShownPassage, SpaceDocs
from kb.home.spaces.reader import SpacesReader
from kb.knowledge.answers import Answer, RawSource
from kb.knowledge.notebook import JobReport
from kb.knowledge.notebook.repository import Logged
from kb.model.asking import (
    DocsAsked,
    Found,
    JobAsked,
    LogAsked,
    QuestionAsked,
    SearchAsked,
    ShowAsked,
    Standing,
    StandingsAsked,
)
from kb.model.config.fingerprint import search_fingerprint
from kb.model.doc import Scope
from kb.model.ids import DocId
from kb.model.token import Role
from kb.search.resolve import resolve_doc
from kb.serve.http_content import is_seen_at, job_report
from kb.serve.http_reply import Refusal, Reply
from kb.serve.http_routes import Caller, Route, Served, has_model
from kb.store.jobs import queue
from kb.store.kv import ReadTxn
from kb.store.records import LEDGER

_Answers = Callable[[Served, Any, Caller], object]


def cli_routes() -> tuple[Route, ...]:
    """A route to each thing that a command asks."""
    return (
        _route("search", "Find passages, as `kb search` does.", SearchAsked, (Found,), _search),
        _route(
            "ask",
            "Answer a question, as `kb ask` does.",
            QuestionAsked,
            (Answer,),
            _ask,
            is_long=has_model,
        ),
        _route(
            "sources",
            "What an answer would be made of, as `kb ask --raw` has it.",
            QuestionAsked,
            (tuple[RawSource, ...],),
            _sources,
        ),
        _route("docs", "List docs, as `kb ls` does.", DocsAsked, (SpaceDocs,), _docs),
        _route(
            "show",
            "Show a doc or a passage, as `kb show` does.",
            ShowAsked,
            (ShownDoc, ShownPassage),
            _show,
        ),
        _route(
            "standings",
            "Say how far the work on docs has come.",
            StandingsAsked,
            (tuple[Standing, ...],),
            _standings,
        ),
        _route(
            "job",
            "Say how it stands with a job, as `kb job` does.",
            JobAsked,
            (JobReport,),
            _job,
            role="writer",
        ),
        _route(
            "log",
            "List what was done in the notebook, as `kb note log` does.",
            LogAsked,
            (tuple[Logged, ...],),
            _log,
            role="admin",
        ),
    )


def _route(
    name: str,
    summary: str,
    asked: type[Struct],
    outputs: tuple[Any, ...],
    answers: _Answers,
    *,
    role: Role = "reader",
    is_long: Callable[[Served, Any], bool] = lambda *_: False,
) -> Route:
    def run(served: Served, request: Any, caller: Caller) -> Reply:
        # In the order in which a command prints it, which is not that of sorted keys.
        return Reply(body=msgspec.json.encode(answers(served, request, caller)))

    return Route(
        method="POST",
        path=f"/v1/cli/{name}",
        role=role,
        summary=summary,
        run=run,
        input=asked,
        outputs=outputs,
        is_long=is_long,
    )


def _reader(served: Served, caller: Caller) -> SpacesReader:
    return SpacesReader(served.spaces, caller.scope)


def _search(served: Served, asked: SearchAsked, caller: Caller) -> Found:
    """What is found, where no other home and no other settings are meant. Raises Refusal."""
    app = served.app
    own = search_fingerprint(app.settings, app.paths.root, served.spaces.names[0])
    if asked.fingerprint not in (None, own):
        raise Refusal(409, "other_settings", "this server has another home or other settings")
    return _reader(served, caller).search(asked)


def _ask(served: Served, asked: QuestionAsked, caller: Caller) -> Answer:
    return _reader(served, caller).answer(asked)


def _sources(served: Served, asked: QuestionAsked, caller: Caller) -> tuple[RawSource, ...]:
    return _reader(served, caller).sources(asked)


def _docs(served: Served, asked: DocsAsked, caller: Caller) -> SpaceDocs:
    return _reader(served, caller).docs(asked)


def _show(served: Served, asked: ShowAsked, caller: Caller) -> Shown:
    return _reader(served, caller).show(asked.id)


def _standings(served: Served, asked: StandingsAsked, caller: Caller) -> tuple[Standing, ...]:
    with served.app.store.read() as txn:
        return tuple(_standing(txn, ident, caller.scope) for ident in asked.doc_ids)


def _standing(txn: ReadTxn, ident: DocId, scope: Scope) -> Standing:
    """Of a doc that the scope does not see any more there is nothing to wait for."""
    try:
        newest = resolve_doc(txn, ident, scope)
    except NotFound:
        return Standing(doc_id=ident, state="done")
    entry = LEDGER.get(txn, newest.doc_id.encode())
    if entry is None or entry.state != "pending":
        return Standing(doc_id=ident, state="done")
    failed = [job for job in queue.of_doc(txn, newest.doc_id) if job.state == "failed"]
    if not failed:
        return Standing(doc_id=ident, state="pending")
    reason = (failed[0].last_error or "unknown") if scope.operator else None
    return Standing(doc_id=ident, state="failed", reason=reason)


def _job(served: Served, asked: JobAsked, caller: Caller) -> JobReport:
    return job_report(served, asked.id, caller)


def _log(served: Served, asked: LogAsked, caller: Caller) -> tuple[Logged, ...]:
    rows = served.app.notebook.commits(asked.limit)
    return tuple(_shown_commit(served, row, caller.scope) for row in rows)


def _shown_commit(served: Served, row: Logged, scope: Scope) -> Logged:
    """A commit as far as a scope may know: paths and titles stand in what a person writes, too."""
    if scope.operator or (row.path and is_seen_at(served, row.path, scope)):
        return row
    subject = f"{row.verb}({row.job_id})" if row.verb else ""
    return msgspec.structs.replace(row, subject=subject, path="")
