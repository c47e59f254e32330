"""Fields that several inputs share, with their bounds.

The bounds hold for what is sent as JSON. The command line makes the same inputs itself, of what its
own options let through, and is not held to them.
"""

from typing import Annotated, Final

from msgspec import Meta

from kb.model.doc import Kind

TOKENS_MAX_DEFAULT: Final = 8_000
ROWS_MAX: Final = 200
NO_BUDGET: Final = 1 << 62
"""As `max_tokens`, which no agent can send: the answer is whole."""

Ident = Annotated[str, Meta(min_length=1, max_length=64)]
Word = Annotated[str, Meta(min_length=1, max_length=512)]
Hits = Annotated[int, Meta(ge=1, le=100, description="How many passages are wanted.")]
Rows = Annotated[int, Meta(ge=1, le=ROWS_MAX, description="How many are wanted.")]
Tags = Annotated[
    tuple[Word, ...], Meta(max_length=32, description="Only docs that have all of these tags.")
]
Kinds = Annotated[
    tuple[Kind, ...], Meta(max_length=16, description="Only docs of one of these kinds.")
]
TokensMax = Annotated[
    int,
    Meta(
        ge=1,
        le=200_000,
        description="About how many tokens the answer may have; it says what was cut.",
    ),
]
Sources = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=4_096)], ...],
    Meta(
        max_length=16,
        description="Only docs from one of these files, folders or addresses, or from below it, "
        "as `source` says where a doc is from.",
    ),
]
