"""Objects in answers, and messages in streams, however they are wrapped and cut."""

import itertools
import json

import pytest
from growth import assert_linear
from hypothesis import given
from hypothesis import strategies as st

from kb.errors import BadAnswer
from kb.knowledge.llm import json_of
from kb.knowledge.llm.framing import event_data, json_lines, lines

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)
OBJECTS = st.dictionaries(TEXT, VALUES)
PROSE = st.text("abc .,:;\n[]()\"'0", max_size=40)


@given(OBJECTS, PROSE, PROSE, st.sampled_from([None, 0, 2]), st.booleans())
def test_an_object_is_found_whatever_stands_around_it(
    said: dict[str, object], before: str, after: str, indent: int | None, is_ascii: bool
) -> None:
    """Words without braces before and after change nothing."""
    text = json.dumps(said, indent=indent, ensure_ascii=is_ascii)
    assert json_of(f"{before}{text}{after}") == said


@given(OBJECTS, st.sampled_from(["```json", "```", "  ```JSON", "```js x"]), st.text("a {}\n"))
def test_a_fence_keeps_other_braces_out(said: dict[str, object], fence: str, around: str) -> None:
    """Of what stands outside the one fence nothing counts."""
    text = json.dumps(said, indent=1)
    assert json_of(f"{around}\n{fence}\n{text}\n```\n{around}") == said


@given(OBJECTS.filter(bool), st.data())
def test_a_part_of_an_object_is_none(said: dict[str, object], data: st.DataObject) -> None:
    """An answer that breaks off is an error, never one of its inner objects."""
    text = json.dumps({"outer": said})
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(BadAnswer):
        json_of(text[:cut])


@given(st.text() | st.text('{}[]",:`\n \\u1e'))
def test_any_text_is_an_object_or_an_error(text: str) -> None:
    """Whatever a model says, one of the two comes out."""
    try:
        said = json.dumps(json_of(text))
    except BadAnswer as error:
        said = str(error)
        assert said.isprintable()
    assert said.startswith(("{", "the language model: "))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "[1]",
        "3",
        '{"a": NaN}',
        '{"a": 1} {"b": 2}',
        "{'a': 1}",
        '{"a": 1,}',
        "}{",
        "\ud800",
    ],
)
def test_what_is_not_one_object_is_refused(text: str) -> None:
    """Lists, several objects, and what only looks like JSON."""
    with pytest.raises(BadAnswer, match="not one JSON object; it begins: "):
        json_of(text)


def test_the_error_shows_the_start_of_the_answer() -> None:
    """In one line, bounded."""
    with pytest.raises(BadAnswer) as caught:
        json_of("I am\nsorry " * 1000)
    said = "the language model: the answer is not one JSON object; it begins: I am sorry I am"
    assert str(caught.value).startswith(said)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "unit",
    ["{", "```\n", '{"a":', "\n"],
)
def test_hostile_answers_are_read_in_linear_time(unit: str) -> None:
    """Whatever an answer repeats, twice is twice the work, and it ends in the error."""

    def read(text: str) -> None:
        with pytest.raises(BadAnswer):
            json_of(text)

    half = unit * ((1 << 18) // len(unit))
    assert_linear(read, half, half * 2)
    read(unit * ((1 << 20) // len(unit)))


def test_a_huge_answer_is_not_read() -> None:
    """The limit is on the text as a whole."""
    with pytest.raises(BadAnswer, match="over 1,048,576 characters"):
        json_of('{"a": 1}'.ljust((1 << 20) + 1))
    assert json_of('{"a": 1}'.ljust(1 << 20)) == {"a": 1}


def in_parts(body: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    return [body[start:end] for start, end in itertools.pairwise(edges)]


CUTS = st.lists(st.integers(0, 10_000))
LINE = st.binary(max_size=20).map(lambda said: said.replace(b"\n", b"").replace(b"\r", b""))


@given(st.lists(LINE), st.sampled_from([b"\n", b"\r\n"]), LINE, CUTS)
def test_lines_do_not_depend_on_the_cuts(
    said: list[bytes], end: bytes, tail: bytes, cuts: list[int]
) -> None:
    """Wherever the network cuts; what has no end is no line."""
    body = b"".join(line + end for line in said) + tail
    assert list(lines(in_parts(body, cuts))) == said
    assert list(json_lines(in_parts(body, cuts))) == [line for line in said if line.strip()]


@given(st.lists(st.lists(LINE, min_size=1)), st.sampled_from([b"\n", b"\r\n"]), CUTS)
def test_events_do_not_depend_on_the_cuts(
    events: list[list[bytes]], end: bytes, cuts: list[int]
) -> None:
    """Data over several lines is joined; comments and names are passed over."""
    body = b""
    for event in events:
        data = b"".join(b"data: " + line + end for line in event)
        body += b": ping" + end * 2 + b"event: x" + end + data + b"id: 1" + end * 2
    assert list(event_data(in_parts(body + b"data: cut", cuts))) == [
        b"\n".join(event) for event in events
    ]
