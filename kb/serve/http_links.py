"""Links that open the page once, for the person at the machine, who then needs no token in it."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from kb.operations.tokens import PageLink
from kb.serve.http_page import PAGE, PAGE_HEADERS
from kb.serve.http_reply import Refusal, Reply, json_of
from kb.serve.http_routes import Caller, Route, Served

_HTML: Final = "text/html; charset=utf-8"


class OpenInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which link it is."""

    link: Annotated[str, Meta(min_length=1, max_length=128)]


def link_routes() -> tuple[Route, ...]:
    """A link is made, and opened."""
    return (
        Route(
            method="GET",
            path="/open/{link}",
            role=None,
            summary="Open the page by a link, which is good for once.",
            run=_opened,
            input=OpenInput,
            media=_HTML,
            status=303,
            refuses=(404,),
            waits=False,
        ),
        Route(
            method="POST",
            path="/v1/links",
            role="admin",
            summary="Make a link that opens the page once, for the operator.",
            run=_link,
            takes="nothing",
            outputs=(PageLink,),
            refuses=(403,),
        ),
    )


def _opened(served: Served, request: OpenInput, _: Caller) -> Reply:
    cookie = served.sessions.opened(request.link)
    if cookie is None:
        detail = "this link was used already or is too old; `kb token link` prints another"
        raise Refusal(404, "link_used", detail)
    header = f"{served.cookie}={cookie}; Path=/; HttpOnly; SameSite=Strict"
    headers = (("location", PAGE), ("set-cookie", header), *PAGE_HEADERS)
    return Reply(status=303, media=_HTML, headers=headers)


def _link(served: Served, _: Any, caller: Caller) -> Reply:
    if not caller.scope.operator:
        raise Refusal(403, "forbidden", "only the person at the machine may make a link")
    return json_of(PageLink(path=f"/open/{served.sessions.link()}"))
