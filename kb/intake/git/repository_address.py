"""The address of a repository as a person names it: `git+https://HOST/PATH@REF`."""

import re
from typing import Final

from msgspec import Struct

from kb.errors import Refused
from kb.intake.git.remote import BadRemote, Remote, host_of, parsed

_MARK: Final = "git+"
_SCHEMES: Final = ("https", "http", "ssh", "file")
_SHAPE: Final = re.compile(r"(?is)git\+([a-z]+)://([^/?#]*)(/[^?#]*)")
# git's own rules for names, without a start that could be taken for an option.
_REF: Final = re.compile(r"(?!-|.*(?:\.\.|//|@\{|/\.|\.lock(?:/|\Z)|[/.]\Z))[!-~]{1,250}\Z")
_NOT_IN_REF: Final = frozenset(" ~^:?*[\\@")
TOKEN_NAME: Final = "KB_GIT_TOKEN"  # noqa: S105  the name of a variable


class RepositoryAddress(Struct, frozen=True, kw_only=True):
    """A repository and a ref of it."""

    remote: Remote
    ref: str
    """A branch, a tag, a full name such as `refs/pull/1/head`, or a commit's id; empty for the
    branch that the repository names."""
    location: str
    """The address in its normal form, without a password."""


def parse_repository(source: str) -> RepositoryAddress:
    """Read an address. Raises Refused, which says what is wrong with it."""
    shown = re.sub(r"//[^/\s]*@", "//", source)[:300]
    shape = _SHAPE.fullmatch(source)
    if shape is None or shape[1].lower() not in _SCHEMES or not source.isprintable():
        detail = "not the address of a repository, such as git+https://HOST/PATH or git+ssh://…@REF"
        raise Refused(detail, source=shown)
    scheme, place, path = shape[1].lower(), shape[2], shape[3]
    path, ref = _split_ref(path)
    if ref and (not _REF.match(ref) or _NOT_IN_REF.intersection(ref)):
        raise Refused(f"{ref} is no name of a branch, a tag or a commit", source=shown)
    try:
        remote = parsed(f"{scheme}://{place}{path.rstrip('/')}", TOKEN_NAME)
    except BadRemote as error:
        raise Refused(str(error), source=shown) from error
    location = f"{_MARK}{_normal(scheme, remote, path)}" + (f"@{ref}" if ref else "")
    return RepositoryAddress(remote=remote, ref=ref, location=location)


def _split_ref(path: str) -> tuple[str, str]:
    """A path, and what stands behind its last `@`; one that begins a name belongs to the path."""
    before, mark, ref = path.rpartition("@")
    return (before, ref) if mark and not before.endswith("/") else (path, "")


def _normal(scheme: str, remote: Remote, path: str) -> str:
    path = path.rstrip("/")
    if remote.kind == "local":
        return f"file://{path}"
    if remote.kind == "http":
        return f"{scheme}://{host_of(remote).lower()}{path}"
    host = f"[{remote.host}]" if ":" in remote.host else remote.host.lower()
    user = f"{remote.user}@" if remote.user else ""
    port = f":{remote.port}" if remote.port not in (None, 22) else ""
    return f"ssh://{user}{host}{port}{path}"
