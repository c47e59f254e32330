"""The page: a few files that a browser runs, the same for whoever asks for them.

They are read once, and a request names one of them: no path that is asked for reaches the disk.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from kb.serve.http_reply import Refusal, Reply
from kb.serve.http_routes import Caller, Route, Served

PAGE: Final = "/"
_FOLDER: Final = Path(__file__).with_name("page")
_INDEX: Final = "index.html"
_MEDIA: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Nothing runs, loads or is sent anywhere but what this server itself hands out.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
PAGE_HEADERS: Final = (
    ("content-security-policy", _POLICY),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
)


class PageInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which file of the page is wanted."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]


@functools.cache
def page_files() -> Mapping[str, Reply]:
    """The files of the page by name, as they are sent."""
    return {
        path.name: Reply(body=path.read_bytes(), media=_MEDIA[path.suffix], headers=PAGE_HEADERS)
        for path in sorted(_FOLDER.iterdir())
        if path.suffix in _MEDIA
    }


def page_routes() -> tuple[Route, ...]:
    """The page and what it is made of. They are for anybody, and tell nothing of what is kept."""
    files = page_files()

    def index(served: Served, _: Any, caller: Caller) -> Reply:  # noqa: ARG001  the same for all
        return files[_INDEX]

    def part(served: Served, request: PageInput, caller: Caller) -> Reply:  # noqa: ARG001
        if request.name not in files:
            raise Refusal(404, "not_found", "the page has no such part")
        return files[request.name]

    return (
        Route(
            method="GET",
            path=PAGE,
            role=None,
            summary="The page for people.",
            run=index,
            waits=False,
        ),
        Route(
            method="GET",
            path="/page/{name}",
            role=None,
            summary="A part of the page.",
            run=part,
            input=PageInput,
            waits=False,
        ),
    )
