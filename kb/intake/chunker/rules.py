"""How large is a chunk, and by which rules is a text cut? Known without the code that cuts."""

from typing import Final

TOKENS_MAX: Final = 256
OVERLAP_TOKENS: Final = 32
ENTRY_SECTION_LEVEL: Final = 2
"""Each `##` section of an entry is a chunk of its own."""


def fingerprint(tokens_max: int, overlap: int, section_level: int | None = None) -> str:
    """Names the rules and their parameters: equal fingerprints cut equal markdown alike."""
    rules = f"chunk-2:tokens={tokens_max},overlap={overlap}"
    return rules if section_level is None else f"{rules},level={section_level}"


FINGERPRINT: Final[str] = fingerprint(TOKENS_MAX, OVERLAP_TOKENS)
