"""Say how something is done, from entries alone."""

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct

from kb.knowledge.guide.answers import Guidance
from kb.model.doc import Scope
from kb.operations.failure import Failed, failed
from kb.operations.operation import Address, Operation

if TYPE_CHECKING:
    from kb.home.spaces.spaces import Spaces


class GuideRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody wants to do."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=8_192,
            description="What you want to do.",
            extra={"parameter": "q"},
        ),
    ]


def run(spaces: "Spaces", request: GuideRequest, scope: Scope) -> Guidance | Failed:
    """Up to three sections of entries that answer, of every space and of kb's own."""
    if spaces.guide is None:
        return failed("unavailable", "there is nobody to help here")
    return spaces.guide.guidance(request.query, scope)


GUIDE: Final = Operation(
    name="guide",
    summary="Say how something is done, from entries alone.",
    request=GuideRequest,
    results=(Guidance,),
    run=run,
    addresses=(
        Address(
            path="/v1/guide",
            summary="Say how something is done, from entries alone.",
            request=GuideRequest,
            result=Guidance,
            tells_spaces=False,
            by_space=False,
            run=run,
        ),
    ),
)
