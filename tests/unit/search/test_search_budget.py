"""A budget of tokens filled with passages."""

import msgspec
from builders import make_chunk
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.model.text import Chunk
from kb.search.budget import FilledBudget, fill_budget


def passage(ordinal: int, tokens: int = 10, source_no: int = 1) -> Chunk:
    made = make_chunk(100 * source_no + ordinal, f"{source_no}-{ordinal}", source_no=source_no)
    return msgspec.structs.replace(made, ordinal=ordinal, tokens=tokens)


def filled(
    hits: list[Chunk], tokens_max: int, source: dict[tuple[int, int], Chunk]
) -> FilledBudget:
    return fill_budget(
        hits, tokens_max, lambda source_no, ordinal: source.get((source_no, ordinal))
    )


def a_source(count: int, tokens: int = 10, source_no: int = 1) -> dict[tuple[int, int], Chunk]:
    return {(source_no, n): passage(n, tokens, source_no) for n in range(count)}


def shown(result: FilledBudget) -> list[tuple[int, int, int]]:
    return [(span.source_no, span.first.ordinal, span.last.ordinal) for span in result.spans]


def test_the_first_hit_is_always_shown() -> None:
    """One passage larger than the budget is shown all the same, alone."""
    result = filled([passage(0, 50), passage(0, 5, 2)], 10, {})
    assert shown(result) == [(1, 0, 0)]
    assert result.left_out == 1


def test_a_smaller_hit_takes_the_room_that_a_larger_one_leaves() -> None:
    """What does not fit is left out; what comes after it may fit."""
    result = filled([passage(0, 8), passage(0, 20, 2), passage(0, 2, 3)], 10, {})
    assert shown(result) == [(1, 0, 0), (3, 0, 0)]
    assert result.left_out == 1


def test_neighbours_fill_what_is_left() -> None:
    """After the hits their neighbours come in, after before before, as far as there is room."""
    source = a_source(9)
    assert shown(filled([source[1, 4]], 30, source)) == [(1, 4, 6)]
    assert shown(filled([source[1, 8]], 30, source)) == [(1, 6, 8)]
    assert shown(filled([source[1, 4]], 1000, source)) == [(1, 0, 8)]


def test_touching_hits_are_one_span() -> None:
    """Hits that stand next to each other are shown as one text, at the better one's place."""
    source = a_source(9)
    result = filled([source[1, 4], passage(0, 10, 2), source[1, 5]], 30, source)
    assert shown(result) == [(1, 4, 5), (2, 0, 0)]
    assert (result.joined, result.left_out) == (1, 0)


def test_a_hit_that_is_shown_already_costs_nothing() -> None:
    """The same passage twice is shown once."""
    source = a_source(1)
    result = filled([source[1, 0], source[1, 0]], 100, source)
    assert shown(result) == [(1, 0, 0)]
    assert result.joined == 1


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), min_size=1, max_size=12, unique=True),
    st.integers(1, 200),
    st.integers(1, 40),
)
def test_never_over_the_budget_nor_twice(
    picks: list[tuple[int, int]], tokens_max: int, tokens: int
) -> None:
    """Whatever is asked: the sum fits unless one hit alone does not; no passage is shown twice."""
    source = a_source(10, tokens) | a_source(10, tokens, 2) | a_source(10, tokens, 3)
    hits = [source[pick] for pick in picks]
    result = filled(hits, tokens_max, source)
    covered = [
        (span.source_no, ordinal)
        for span in result.spans
        for ordinal in range(span.first.ordinal, span.last.ordinal + 1)
    ]
    assert len(covered) == len(set(covered))
    assert len(covered) * tokens <= tokens_max or len(covered) == 1
    assert sum(span.tokens for span in result.spans) == len(covered) * tokens
    assert picks[0] in covered
    assert len(result.spans) + result.joined + result.left_out == len(hits)
