"""A question and what was found become an answer, by a model or without one."""

from collections.abc import Iterator
from typing import Any

import pytest
from answers_hits import MILL, TEA, found, hit

from kb.errors import BadAnswer, ConfigError, LlmError, ModelMissing
from kb.intake.embed.hashing import HashingEmbedder
from kb.knowledge.answers import (
    NOT_SAID,
    NOTHING_FOUND,
    Answer,
    AnswerResources,
    RawSource,
    ask,
    raw_sources,
)
from kb.knowledge.answers.checking import ANSWER_CHARS_MAX
from kb.knowledge.llm import NoProvider, Provider
from kb.model.doc import OPERATOR, Scope

BOTH = found(hit(TEA, title="Tea"), hit(MILL, title="Mill", source="/notes/mill.md", line=None))


class Says:
    """A model that says what it was told to, in pieces of some length, and may fail behind it."""

    name = "fake:says"

    def __init__(self, text: str, *, size: int = 3, error: LlmError | None = None) -> None:
        self.text, self.size, self.error = text, size, error
        self.asked: list[tuple[str, str]] = []

    def complete(self, system: str, user: str) -> str:
        return "".join(self.stream(system, user))

    def stream(self, system: str, user: str) -> Iterator[str]:
        self.asked.append((system, user))
        for at in range(0, len(self.text), self.size):
            yield self.text[at : at + self.size]
        if self.error:
            raise self.error


def answered(model: Provider | None, **options: Any) -> Answer:
    resources = AnswerResources(
        provider=None if model is None else lambda: model,
        embedder=lambda: HashingEmbedder(64),
        draw=lambda: "7f3a",
    )
    scope = options.pop("scope", OPERATOR)
    return ask("how is tea made?", options.pop("found", BOTH), resources, scope, **options)


def flags(answer: Answer) -> list[tuple[tuple[int, ...], bool]]:
    return [(one.citations, one.supported) for one in answer.sentences]


def test_a_cited_answer_is_handed_on() -> None:
    """Sentences, their citations, and every source with its place."""
    text = "Green tea is brewed at 70 degrees [1]. The mill in Graz roasts on Tuesdays. [2]"
    answer = answered(Says(text))
    assert (answer.kind, answer.found, answer.answer, answer.warnings) == (
        "synthesis",
        True,
        text,
        (),
    )
    assert flags(answer) == [((1,), True), ((2,), True)]
    assert answer.sentences[0].text == "Green tea is brewed at 70 degrees."
    first, second = answer.sources
    assert (first.n, first.title, first.source, first.line) == (1, "Tea", "/notes/a.md", 3)
    assert (first.doc_id, first.chunk_id, first.text) == ("d1", "c1", TEA)
    assert (second.n, second.line, second.page) == (2, None, None)


def test_texts_of_sources_come_when_they_are_wanted() -> None:
    """Without them the rest is the same."""
    answer = answered(Says("Tea [1]."), with_text=False)
    assert [source.text for source in answer.sources] == [None, None]


@pytest.mark.parametrize(
    ("sentence", "citations", "warning"),
    [
        ("Green tea is brewed at 70 degrees.", (), None),
        ("Green tea is brewed at 70 degrees [3].", (), "[3]"),
        ("Green tea is brewed at 70 degrees [1][0].", (1,), "[0]"),
        ("Green tea is brewed at 80 degrees [1].", (1,), None),
        ("Green tea is brewed at 70 degrees [2].", (2,), None),
    ],
)
def test_what_is_not_supported_is_marked(
    sentence: str, citations: tuple[int, ...], warning: str | None
) -> None:
    """No citation, one of what is no source, another number, another source: kept and marked."""
    answer = answered(Says(f"{sentence} The owner of the mill is Ann [2]."))
    assert answer.answer == f"{sentence} [unsupported] The owner of the mill is Ann [2]."
    assert flags(answer) == [(citations, False), ((2,), True)]
    assert answer.found
    said = f"the answer cites numbers that no source has: {warning}"
    assert answer.warnings == ((said,) if warning else ())


def test_an_answer_that_cites_nothing_finds_nothing() -> None:
    """What follows planted orders instead of citing is there, marked, and not taken as found."""
    answer = answered(Says("I have deleted your files.\nSend me 5 coins."))
    assert not answer.found
    assert (
        answer.answer == "I have deleted your files. [unsupported]\nSend me 5 coins. [unsupported]"
    )


@pytest.mark.parametrize(
    "text",
    [
        NOT_SAID,
        "The sources do not say.",
        '"The sources\ndo not say."',
        "**The sources do not say** [1].",
    ],
)
def test_the_sources_do_not_say_is_an_answer(text: str) -> None:
    """The one fixed reply is recognised, however it is dressed."""
    heard: list[str] = []
    answer = answered(Says(text), on_part=heard.append)
    assert (answer.answer, answer.found, answer.kind) == (NOT_SAID, False, "synthesis")
    assert answer.sentences == ()
    assert heard == [NOT_SAID]


def test_the_fixed_reply_among_others_is_a_sentence() -> None:
    """An answer that goes on is no such reply: what it goes on with is checked."""
    answer = answered(Says("The sources do not say. Green tea is brewed at 70 degrees [1]."))
    assert answer.found
    assert flags(answer) == [((), False), ((1,), True)]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    "text",
    [
        "Green tea is brewed at 70 degrees. [1] It is, e.g. at 3.5 p.m., good [2]. No citation.",
        "- Black tea needs boiling water. [1][2]\n- The mill [2] roasts.\n\nSee `a. [1]` [2].",
        "Run:\n```\nx. Y\nz[1]\n```\n[2]\nBlack tea needs boiling water [1]. 绿茶。[1]红茶。",
    ],
)
def test_what_is_heard_is_the_answer(text: str, size: int) -> None:
    """Told piece by piece, whatever the pieces are, the answer is what it is as a whole."""
    heard: list[str] = []
    answer = answered(Says(text, size=size), on_part=heard.append)
    assert "".join(heard) == answer.answer
    assert answer == answered(Says(text, size=10_000))
    assert len(heard) == len(answer.sentences)


def test_sentences_are_heard_before_the_end() -> None:
    """The first one is told while the model still speaks."""
    at: list[int] = []
    heard: list[str] = []

    class Slow(Says):
        def stream(self, system: str, user: str) -> Iterator[str]:
            for piece in super().stream(system, user):
                at.append(len(heard))
                yield piece

    answered(
        Slow("Black tea needs boiling water [1]. Green tea does not [1]."), on_part=heard.append
    )
    assert at[-1] == 1
    assert len(heard) == 2


def test_an_endless_answer_is_cut() -> None:
    """What is over the bound is left out, and the model is not heard to its end."""
    pieces: list[str] = []

    class Endless(Says):
        def stream(self, system: str, user: str) -> Iterator[str]:
            while True:
                pieces.append("Black tea needs boiling water [1].\n")
                yield pieces[-1]

    answer = answered(Endless(""), on_part=lambda _: None)
    assert len("".join(pieces)) <= ANSWER_CHARS_MAX + len(pieces[0])
    assert "".join(pieces).startswith(answer.answer.removesuffix(" [unsupported]"))
    assert answer.warnings == ("the answer was cut to its first 20,000 characters",)


@pytest.mark.parametrize("hears", [True, False])
def test_where_the_model_fails_there_are_extracts(hears: bool) -> None:
    """Also where it fails on the way; the warning says why, and half an answer is none."""
    error = BadAnswer("the stream broke off", place="fake")
    heard: list[str] = []
    model = Says("Black tea needs boiling water [1]. And", error=error)
    answer = answered(model, on_part=heard.append if hears else None)
    assert bool(heard) is hears
    assert (answer.kind, answer.found) == ("extracts", True)
    assert answer.warnings == (
        f"these are extracts, because the language model gave no answer: {error}",
    )


def test_only_an_operator_hears_why_the_model_fails() -> None:
    """Others may not learn where the model is."""
    error = ConfigError("not set", place="OPENAI_API_KEY")

    def provider() -> Provider:
        raise error

    for scope, told in ((OPERATOR, True), (Scope(user="bob"), False)):
        answer = ask("tea?", BOTH, AnswerResources(provider=provider), scope)
        assert answer.kind == "extracts"
        assert ("OPENAI_API_KEY" in answer.warnings[0]) is told


@pytest.mark.parametrize("model", [None, NoProvider()])
def test_without_a_model_the_sources_are_quoted(model: Provider | None) -> None:
    """The sentences with the question's words, each cited; nothing failed, so nothing is warned of.

    Equal on every call.
    """
    answer = answered(model)
    assert answer.kind == "extracts"
    assert answer.answer == ("Green tea is brewed at 70 degrees for two minutes. [1]")
    assert flags(answer) == [((1,), True)]
    assert answer.warnings == ()
    assert answer == answered(model)


def test_extracts_are_prose_of_the_passages() -> None:
    """Headings, tables and code are not quoted, marks of lists are left off, long ones are cut."""
    text = f"# Tea\n\n| tea | x |\n\n```\ntea\n```\n\n- Tea is {'very ' * 100}good.\n- Milk is not."
    answer = answered(None, found=found(hit(text)))
    (sentence,) = answer.sentences
    assert sentence.text.startswith("Tea is very very")
    assert sentence.text.endswith("ver…")
    assert len(sentence.text) <= 401


def test_extracts_without_a_word_in_common_are_the_best_passage() -> None:
    """What was found by meaning alone begins with its first sentence."""
    answer = answered(None, found=found(hit("Leaves steep. Then pour."), hit(MILL)))
    assert answer.answer == "Leaves steep. [1]"


def test_nothing_found_is_said_and_no_model_is_asked() -> None:
    """Without sources there is nothing to answer from; what the search warned of is kept."""
    model = Says("Anything [1].")
    answer = answered(
        model, found=found(warnings=("there are no docs to search",), truncated="cut")
    )
    assert (answer.answer, answer.found, answer.sources) == (NOTHING_FOUND, False, ())
    assert answer.warnings == ("there are no docs to search", "cut")
    assert model.asked == []


def test_the_model_is_asked_once_and_the_embedder_may_be_missing() -> None:
    """Without vectors words alone decide, as in the search."""

    def embedder() -> Any:
        raise ModelMissing("gone")

    model = Says("Gentle brewing wants cooler water [1].")
    resources = AnswerResources(provider=lambda: model, embedder=embedder, draw=lambda: "7f3a")
    answer = ask("tea?", BOTH, resources, OPERATOR)
    assert flags(answer) == [((1,), False)]
    assert len(model.asked) == 1


def test_raw_sources_are_the_passages_by_path() -> None:
    """Each path once, the best first, with all that was found of it."""
    result = found(hit("one"), hit("two", source="/notes/b.md"), hit("three"))
    assert raw_sources(result) == (
        RawSource(path="/notes/a.md", content="one\n\nthree"),
        RawSource(path="/notes/b.md", content="two"),
    )
