"""Bounds that several operations share for agents, and for whoever reads by address.

A command is not held to them: its options let through what they let through.
"""

from typing import Annotated, Final

from msgspec import Meta

from kb.operations.operation import Bounds

TOKENS_MAX_DEFAULT: Final = 8_000
ROWS_MAX: Final = 200
WORD_CHARS_MAX: Final = 512

_PLACE: Final = Meta(min_length=1, max_length=4_096)
_WORD: Final = Meta(min_length=1, max_length=WORD_CHARS_MAX)
TOKENS: Final = Meta(ge=1, le=200_000)

Word = Annotated[str, _WORD]
Tags = Annotated[
    tuple[Word, ...],
    Meta(
        max_length=32,
        description="Only docs that have all of these tags.",
        extra={"parameter": "tag"},
    ),
]
MaxTokens = Annotated[
    Annotated[int, Meta(ge=1, le=1 << 62)] | None,
    Meta(description="About how many tokens the answer may have; it says what was cut."),
]

FILTER_BOUNDS: Final = {
    "tags": Bounds(meta=Meta(max_length=32), items=_WORD),
    "kinds": Bounds(meta=Meta(max_length=16)),
    "doc_ids": Bounds(meta=Meta(max_length=100), items=_PLACE),
    "linked_to": Bounds(meta=Meta(max_length=16), items=_PLACE),
    "links_from": Bounds(meta=Meta(max_length=16), items=_PLACE),
    "packs": Bounds(meta=Meta(max_length=16), items=_WORD),
    "site_versions": Bounds(meta=Meta(max_length=16), items=_WORD),
    "sources": Bounds(meta=Meta(max_length=16), items=_PLACE),
}
HITS: Final = Bounds(meta=Meta(ge=1, le=100))
TOOL_HITS: Final = Bounds(meta=HITS.meta, name="limit")
ROWS: Final = Bounds(meta=Meta(ge=1, le=ROWS_MAX))
IDENT_OR_PLACE: Final = Bounds(meta=_PLACE)
BUDGET: Final = Bounds(meta=TOKENS, default=TOKENS_MAX_DEFAULT)
ENTITIES: Final = Bounds(meta=Meta(max_length=16), items=_WORD)
