"""What goes back: an answer, or a problem as RFC 9457 has it."""

import gzip
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from kb.model.ids import sha256_hex
from kb.operations.failure import ErrorCode, Failed
from kb.serve.http_streams import Pieces

JSON: Final = "application/json"
BINARY: Final = "application/octet-stream"
EVENTS: Final = "text/event-stream"
PROBLEM: Final = "application/problem+json"
_GZIP_BYTES_MIN: Final = 1_024
_GZIP_LEVEL: Final = 6
_ETAG_HEX: Final = 32

# What a tool's error is over HTTP.
STATUSES: Final[Mapping[ErrorCode, int]] = {
    "unknown_tool": 404,
    "invalid_input": 422,
    "not_found": 404,
    "ambiguous_id": 409,
    "forbidden": 403,
    "busy": 503,
    "behind": 503,
    "damaged": 500,
    "unavailable": 503,
}
RETRY_AFTER: Final = ("retry-after", "1")


class Reply(Struct, frozen=True, kw_only=True):
    """A status, a body, and headers beside those that every reply has."""

    status: int = 200
    body: bytes = b""
    media: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    stream: Pieces | None = None
    """In the place of a body: sent piece by piece, neither tagged nor packed."""


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was wrong with a request."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str | None = None
    """None where the request could not even be read."""
    field: str | None = None
    """The field of the input that is at fault, where it is one."""


class Refusal(Exception):
    """A request that is not answered, and why, in words for whoever sent it."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        field: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.field = field
        self.headers = headers


def json_of(value: object, *, status: int = 200) -> Reply:
    """A value as JSON: equal values give equal bytes."""
    return Reply(status=status, body=msgspec.json.encode(value, order="deterministic"))


def refusal_of(failed: Failed) -> Refusal:
    """What a tool's error is over HTTP."""
    error = failed.error
    status = STATUSES[error.code]
    headers = (RETRY_AFTER,) if status == 503 else ()
    return Refusal(status, error.code, error.message, field=error.field, headers=headers)


def problem_of(refusal: Refusal, request_id: str | None = None) -> Reply:
    """A refusal as a problem document."""
    import http

    problem = Problem(
        type=f"urn:kb:problem:{refusal.code}",
        title=http.HTTPStatus(refusal.status).phrase,
        status=refusal.status,
        detail=refusal.detail,
        request_id=request_id,
        code=refusal.code,
        field=refusal.field,
    )
    return Reply(
        status=refusal.status,
        body=msgspec.json.encode(problem),
        media=PROBLEM,
        headers=refusal.headers,
    )


def tagged(reply: Reply, if_none_match: str) -> Reply:
    """A read with its ETag; 304 without a body where the reader has it already.

    The tag is a weak one, for the packed and the plain form of a body share it.
    """
    tag = f'W/"{sha256_hex(reply.body)[:_ETAG_HEX]}"'
    headers = (*reply.headers, ("etag", tag), ("cache-control", "private, no-cache"))
    tags = {etag.strip().removeprefix("W/") for etag in if_none_match.split(",")}
    if "*" in tags or tag.removeprefix("W/") in tags:
        return Reply(status=304, media=reply.media, headers=headers)
    return Reply(status=reply.status, body=reply.body, media=reply.media, headers=headers)


def packed(reply: Reply, accept_encoding: str) -> Reply:
    """The reply gzipped, where that is accepted and worth it."""
    if len(reply.body) < _GZIP_BYTES_MIN or not _takes_gzip(accept_encoding):
        return reply
    body = gzip.compress(reply.body, _GZIP_LEVEL, mtime=0)
    headers = (*reply.headers, ("content-encoding", "gzip"))
    return Reply(status=reply.status, body=body, media=reply.media, headers=headers)


def _takes_gzip(accept_encoding: str) -> bool:
    for coding in accept_encoding.split(","):
        name, _, weight = coding.partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return weight.replace(" ", "").lower() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
