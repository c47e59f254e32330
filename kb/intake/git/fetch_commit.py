"""Fetches the files of a repository's newest commit, by a child process with limits."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from kb.errors import Refused, Transient
from kb.intake.git.child import end
from kb.intake.git.fetch_child import (
    FILES,
    LISTING,
    USER_NAME,
    CommitListing,
    CommitRequest,
    FetchedTree,
    FetchFailed,
    FetchRefused,
    Outcome,
    Unmoved,
)
from kb.intake.git.remote import may_have_token
from kb.intake.git.repository_address import TOKEN_NAME, RepositoryAddress
from kb.model.children import module_argv, module_env
from kb.model.decoding import decode_json

_GRACE_S: Final = 10
# None of git's own variables: they could name other commands, folders and settings.
_ENV_KEPT: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "SSH_AUTH_SOCK"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "KB_FAILPOINTS", "KB_FAILPOINTS_LOG"),
)
Check = Callable[[RepositoryAddress], tuple[str, ...]]
"""The addresses of a repository's host, all of which kb may connect to. Raises a SourceError."""


class FetchLimits(Struct, frozen=True, kw_only=True):
    """What bounds one fetch, and who may have the token."""

    file_bytes_max: int
    bytes_max: int
    seconds_max: int
    token_host: str = ""


class FetchedCommit(Struct, frozen=True, kw_only=True):
    """A commit, its files, and what is not among them."""

    tip: str
    files: Path
    """The folder that they are in."""
    listing: CommitListing


def fetch(
    address: RepositoryAddress, known: str, folder: Path, check: Check, limits: FetchLimits
) -> FetchedCommit | None:
    """The files of what the ref names now, in an empty `folder`; None if it still names `known`.

    Raises Refused for what a person has to change, and Transient for what may pass.
    """
    request = CommitRequest(
        remote=address.remote,
        ref=address.ref,
        known=known,
        folder=os.fspath(folder),
        addresses=check(address) if address.remote.kind != "local" else (),
        token_host=limits.token_host,
        file_bytes_max=limits.file_bytes_max,
        bytes_max=limits.bytes_max,
        seconds_max=limits.seconds_max,
    )
    match _outcome(request):
        case FetchedTree(tip=tip):
            listing = decode_json((folder / LISTING).read_bytes(), CommitListing)
            return FetchedCommit(tip=tip, files=folder / FILES, listing=listing)
        case Unmoved():
            return None
        case FetchRefused(detail=detail):
            raise Refused(detail, source=address.location)
        case FetchFailed(detail=detail):
            raise Transient(detail, source=address.location)


def _outcome(request: CommitRequest) -> Outcome:
    has_login = may_have_token(request.remote, request.token_host)
    env = module_env((*_ENV_KEPT, *((USER_NAME, TOKEN_NAME) if has_login else ())))
    process = subprocess.Popen(
        module_argv("kb.intake.git.fetch_child"),
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(
            msgspec.json.encode(request), timeout=request.seconds_max + _GRACE_S
        )
        outcome: Outcome = decode_json(output, Outcome)
        return outcome
    except subprocess.TimeoutExpired:
        return FetchFailed(detail=f"it took longer than {request.seconds_max} s")
    except msgspec.DecodeError:
        return FetchRefused(detail="the process that fetched it ended without an answer")
    finally:
        end(process)
