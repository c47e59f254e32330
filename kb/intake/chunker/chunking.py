"""Markdown in, chunks out."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kb.intake.chunker.blocks import Block, parse_blocks
from kb.intake.chunker.pack import Packer, Piece
from kb.intake.chunker.token_counter import TokenCounter
from kb.model.text import ChunkDraft

SpansOf = Callable[[list[str]], list[list[tuple[int, int]]]]
"""Texts to the character spans of their tokens, without special ones."""

TOKENS_MAX: Final = 256
OVERLAP_TOKENS: Final = 32
_TOKENS_MAX_MIN: Final = 16
_SPECIAL_TOKENS: Final = 2
# Of the budget: what title and heading path may take from the chunk, however long they are.
_PREFIX_SHARE: Final = 3
# Of the budget: a section shorter than this is packed with the next one.
_SMALL_SHARE: Final = 4
# What one call of the tokenizer is given at most, so that its answer stays small in memory.
_BATCH_DOCS: Final = 256
_BATCH_CHARS: Final = 1 << 20


def fingerprint(tokens_max: int, overlap: int, section_level: int | None = None) -> str:
    """Names the rules and their parameters: equal fingerprints cut equal markdown equally."""
    rules = f"chunk-1:tokens={tokens_max},overlap={overlap}"
    return rules if section_level is None else f"{rules},level={section_level}"


FINGERPRINT: Final[str] = fingerprint(TOKENS_MAX, OVERLAP_TOKENS)


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
    edges. Together they hold every character that is not white space; heading lines stand in the
    chunk of their section. Neighbours overlap only inside a section that was cut. Title, path,
    chunk and two special tokens fit `tokens_max`, where the first two take at most a third.
    With `section_level` no chunk goes on past a heading of that level or a higher one, but for
    headings without a body, which lead what stands under them.
    `spans_of` is called once. Time is linear in the markdown's length.

    Raises:
        ValueError: `tokens_max` is under 16, or the overlap is not under a quarter of it.
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
) -> list[list[ChunkDraft]]:
    """What `chunk` says of each, with few calls of `spans_of`: many texts in each of them."""
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
            rules = (tokens_max, overlap_tokens, section_level)
            chunks.append(_chunks(counter, names[number], title_tokens, *rules))
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
    title: str,
    title_tokens: int,
    tokens_max: int,
    overlap: int,
    section_level: int | None,
) -> list[ChunkDraft]:
    markdown = counter.text
    parsed = parse_blocks(markdown)
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
    """How many tokens a chunk under a path may have."""
    # The line's mark (its #s) stands for the separator of the path.
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
