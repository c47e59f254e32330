"""Markdown in, chunks out."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kb.intake.chunker.blocks import Block, parse_blocks
from kb.intake.chunker.pack import Packer, Piece
from kb.intake.chunker.rules import OVERLAP_TOKENS, TOKENS_MAX
from kb.intake.chunker.token_counter import TokenCounter
from kb.model.text import ChunkDraft

BlocksOf = Callable[[str], Sequence[Block]]
"""Finds the blocks of a text, each line that is not blank in exactly one, in order."""
SpansOf = Callable[[list[str]], list[list[tuple[int, int]]]]
"""Returns the character spans of the tokens of each text, without special tokens."""

_TOKENS_MAX_MIN: Final = 16
_SPECIAL_TOKENS: Final = 2
# The share of the budget that title and heading path take at most.
_PREFIX_SHARE: Final = 3
# A section shorter than this share of the budget is packed with the next one.
_SMALL_SHARE: Final = 4
# The most that one call of the tokenizer gets, so that its result stays small in memory.
_BATCH_DOCS: Final = 256
_BATCH_CHARS: Final = 1 << 20


def chunk(
    markdown: str,
    *,
    spans_of: SpansOf,
    tokens_max: int = TOKENS_MAX,
    overlap_tokens: int = OVERLAP_TOKENS,
    section_level: int | None = None,
    title: str = "",
) -> list[ChunkDraft]:
    """The chunks of one markdown, in order of their starts.

    Each chunk's text is markdown[start:end], without blank lines or trailing white space at its
    edges. Together the chunks hold every character that is not white space; a heading line is in
    the chunk of its section. Neighbours overlap only inside a section that was cut. No row of a
    table is cut that fits, and a chunk that begins in a table has the table's first row as the last
    part of its path, at most a third of the budget of it. Title, path, chunk and two special tokens
    fit `tokens_max`; title and the other parts of the path take at most a third of it. With
    `section_level` a chunk ends before the next heading of that level or a higher one; headings
    without a body stay with the text under them. `spans_of` is called once. Time is linear in the
    markdown's length.

    Raises ValueError if `tokens_max` is under 16, or the overlap is over a quarter of it.
    """
    return chunk_many(
        [markdown],
        [title],
        spans_of=spans_of,
        tokens_max=tokens_max,
        overlap_tokens=overlap_tokens,
        section_level=section_level,
    )[0]


def chunk_many(
    markdowns: Sequence[str],
    titles: Sequence[str],
    *,
    spans_of: SpansOf,
    tokens_max: int = TOKENS_MAX,
    overlap_tokens: int = OVERLAP_TOKENS,
    section_level: int | None = None,
    blocks_of: Sequence[BlocksOf] = (),
) -> list[list[ChunkDraft]]:
    """The result of `chunk` for each markdown, with few calls of `spans_of` for many texts each.

    `blocks_of` has for each text what finds its blocks; without them all are markdown.
    """
    if tokens_max < _TOKENS_MAX_MIN or not 0 <= overlap_tokens <= tokens_max // 4:
        raise ValueError(f"cannot cut to {tokens_max} tokens with {overlap_tokens} of overlap")
    chunks: list[list[ChunkDraft]] = []
    for first, last in _batches(markdowns):
        texts = list(markdowns[first:last])
        names = list(titles[first:last])
        spans = spans_of([*texts, *names])
        for number, text in enumerate(texts):
            title_tokens = len(spans[len(texts) + number])
            counter = TokenCounter(text, spans[number])
            parse = blocks_of[first + number] if blocks_of else parse_blocks
            rules = (tokens_max, overlap_tokens, section_level)
            chunks.append(_chunks(counter, parse(text), names[number], title_tokens, *rules))
    return chunks


def _batches(markdowns: Sequence[str]) -> Iterator[tuple[int, int]]:
    first = chars = 0
    for index, markdown in enumerate(markdowns):
        if index > first and (index - first == _BATCH_DOCS or chars + len(markdown) > _BATCH_CHARS):
            yield first, index
            first, chars = index, 0
        chars += len(markdown)
    if first < len(markdowns):
        yield first, len(markdowns)


def _chunks(
    counter: TokenCounter,
    parsed: Sequence[Block],
    title: str,
    title_tokens: int,
    tokens_max: int,
    overlap: int,
    section_level: int | None,
) -> list[ChunkDraft]:
    markdown = counter.text
    packer = Packer(
        counter,
        parsed,
        budget_of=_budget(counter, parsed, title, title_tokens, tokens_max),
        budget_min=tokens_max - _SPECIAL_TOKENS - tokens_max // _PREFIX_SHARE,
        small=tokens_max // _SMALL_SHARE,
        overlap=overlap,
        section_level=section_level,
    )
    marks = _page_marks(markdown)
    return [_chunk(counter, piece, marks) for piece in packer.pieces()]


def _budget(
    counter: TokenCounter, parsed: Sequence[Block], title: str, title_tokens: int, tokens_max: int
) -> Callable[[tuple[str, ...]], int]:
    """How many tokens a chunk may have, by its heading path."""
    # The tokens of the line's mark (its #s) count for the separator of the path.
    lengths = {
        block.title: counter.tokens(block.start, block.end)
        for block in parsed
        if block.kind == "heading" and block.title != title
    }
    most = tokens_max // _PREFIX_SHARE

    def budget_of(path: tuple[str, ...]) -> int:
        prefix = title_tokens + sum(lengths.get(heading, 0) for heading in path)
        return tokens_max - _SPECIAL_TOKENS - min(prefix, most)

    return budget_of


def _page_marks(markdown: str) -> list[int]:
    marks: list[int] = []
    at = markdown.find("\f")
    while at >= 0:
        marks.append(at)
        at = markdown.find("\f", at + 1)
    return marks


def _chunk(counter: TokenCounter, piece: Piece, marks: Sequence[int]) -> ChunkDraft:
    text = counter.text[piece.start : piece.end].rstrip()
    end = piece.start + len(text)
    page = None
    if marks:
        page = 1 + bisect_left(marks, counter.visible(piece.start, end))
    return ChunkDraft(
        text=text,
        start=piece.start,
        end=end,
        heading=piece.path,
        page=page,
        tokens=counter.tokens(piece.start, end),
    )
