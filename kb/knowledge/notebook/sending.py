"""One attempt at a push, in a child process that ends in time, whatever the remote does.

`push.py` runs it as a module: a request on standard input, an outcome on standard output. The
branch on the remote moves forward, or not at all.
"""

import os
import re
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import NotebookUnfit
from kb.intake.git.child import TimeOver, plain, serve, within
from kb.intake.git.remote import Remote
from kb.knowledge.notebook.repository import Repository
from kb.model.failpoints import failpoint

if TYPE_CHECKING:
    from dulwich.client import SendPackResult
    from dulwich.objects import ObjectID
    from dulwich.refs import Ref

    from kb.intake.git.transport import RemoteNames

USER_NAME: Final = "KB_NOTEBOOK_USER"
TOKEN_NAME: Final = "KB_NOTEBOOK_TOKEN"  # noqa: S105  the name of a variable
# Somebody else was quicker, or the remote is busy: another attempt may succeed.
_PASSING: Final = re.compile(
    r"lock ref|fetch first|non-fast-forward|stale info|unable to set|failed to update",
    re.IGNORECASE,
)
# Messages of ssh or a server that only a person can resolve.
_LASTING: Final = re.compile(
    r"permission denied|host key verification|does not appear to be|not found|access denied"
    r"|not authori[sz]ed|unauthori[sz]ed",
    re.IGNORECASE,
)


class SendRequest(Struct, frozen=True, kw_only=True):
    """What to push, and to which remote."""

    root: str
    remote: Remote
    branch: str
    commit: str
    seconds_max: int
    token_host: str = ""
    """The only host that may get KB_NOTEBOOK_TOKEN, if it asks for a login."""


class PushAccepted(Struct, frozen=True, kw_only=True, tag="sent"):
    """The remote has the commit, perhaps since earlier."""


class RemoteAhead(Struct, frozen=True, kw_only=True, tag="moved_on"):
    """The remote's branch has commits that ours does not have."""

    commit: str


class PushRejected(Struct, frozen=True, kw_only=True, tag="declined"):
    """The remote rejects it; another attempt alone changes nothing."""

    detail: str


class PushFailed(Struct, frozen=True, kw_only=True, tag="missed"):
    """It could not be reached, or failed on the way; another attempt may succeed."""

    detail: str


Outcome = PushAccepted | RemoteAhead | PushRejected | PushFailed


class _RemoteAhead(Exception):
    """The remote's branch is not behind ours."""


def attempt(request: SendRequest) -> Outcome:
    """Push once; ends within `seconds_max`, by a signal to this process, which must be alone."""
    from dulwich.errors import GitProtocolError, NotGitRepository, SendPackError
    from dulwich.file import FileLocked
    from urllib3.exceptions import HTTPError

    from kb.intake.git.transport import RemoteUnusable

    try:
        with within(request.seconds_max):
            return _attempt(request)
    except TimeOver:
        return PushFailed(detail=f"it took longer than {request.seconds_max} s")
    except RemoteUnusable as error:
        return PushRejected(detail=plain(str(error), TOKEN_NAME))
    except NotGitRepository:
        return PushRejected(detail="there is no git repository")
    except FileLocked as error:
        lock = os.fsdecode(error.lockfilename)
        return PushFailed(detail=plain(f"{lock} is held by git, or is stale", TOKEN_NAME))
    except (GitProtocolError, HTTPError, NotebookUnfit, OSError, SendPackError) as error:
        detail = plain(str(error), TOKEN_NAME) or type(error).__name__
        return PushRejected(detail=detail) if _LASTING.search(detail) else PushFailed(detail=detail)


def _attempt(request: SendRequest) -> Outcome:
    from kb.intake.git.transport import client_for

    root = Path(request.root)
    commit, branch = _wanted(request)
    remote_tips: list[ObjectID | None] = []
    with closing(Repository(root)) as repository:

        def new_refs(refs: "dict[Ref, ObjectID]") -> "dict[Ref, ObjectID]":
            tip = refs.get(branch)
            remote_tips[:] = [tip]
            if tip is not None and not repository.leads_to(commit, tip):
                raise _RemoteAhead
            failpoint("push.before_send")
            return {branch: commit}

        client, path = client_for(request.remote, root, _names(), request.token_host)
        with closing(client):
            try:
                result = client.send_pack(path, new_refs, repository.packed)
            except _RemoteAhead:
                return RemoteAhead(commit=(remote_tips[0] or b"").decode("ascii"))
    return PushAccepted() if remote_tips == [commit] else _judged(request, result)


def _names() -> "RemoteNames":
    from kb.intake.git.transport import RemoteNames

    return RemoteNames(
        user=USER_NAME,
        token=TOKEN_NAME,
        token_host="notebook.token_host",  # noqa: S106  the name of a setting
        if_moved="set it as origin's address",
    )


def _wanted(request: SendRequest) -> "tuple[ObjectID, Ref]":
    from dulwich.objects import ObjectID
    from dulwich.refs import Ref

    return ObjectID(request.commit.encode()), Ref(os.fsencode(request.branch))


def _judged(request: SendRequest, result: "SendPackResult") -> Outcome:
    statuses = result.ref_status
    name = os.fsencode(request.branch)
    if statuses is None or (name not in statuses and request.remote.kind != "local"):
        return PushFailed(detail="the remote did not say whether it took the commits")
    error = statuses.get(name)
    if error is None:
        return PushAccepted()
    detail = plain(error, TOKEN_NAME)
    return PushFailed(detail=detail) if _PASSING.search(detail) else PushRejected(detail=detail)


def main() -> int:
    """Answer one request; returns the exit status."""
    return serve(SendRequest, attempt)


if __name__ == "__main__":
    sys.exit(main())
