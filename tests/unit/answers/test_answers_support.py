"""Signs that a passage says what a sentence says of it."""

from collections.abc import Sequence

import pytest
from answers_hits import hit

from kb.intake.embed.factory import make_embedder
from kb.knowledge.answers.checking import NEAR_MIN, CitationChecker
from kb.knowledge.answers.support import evidence, supports
from kb.model.embedder import EmbedderChoice

PASSAGE = (
    "The boiler in the cellar is a Kessler K20 from 2011, and cost 1,250 euros. Its pressure is "
    "1.5 bar when cold. Herr Brandl said: keep it dry. It is looked at every two years."
)


def said(sentence: str, *passages: str, near: bool = False) -> bool:
    given = [evidence(text) for text in passages or (PASSAGE,)]
    return supports(given, sentence, lambda _, __: near)


@pytest.mark.parametrize(
    "sentence",
    [
        "The boiler is a Kessler K20.",
        "It cost 1250 euros.",
        "Every 2 years the boiler is looked at.",
        "When cold, its pressure is 1.5 bar.",
        'Herr Brandl said: "Keep it dry."',
        "Brandl said to keep the boiler dry.",
    ],
)
def test_what_a_passage_says_is_supported(sentence: str) -> None:
    """Its words in another order, its numbers in another form, its quotations, its names."""
    assert said(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The boiler is a Kessler K20 from 2012.",
        "Its pressure is 15 bar when cold.",
        'Herr Brandl said: "Keep it wet."',
        "The boiler in the cellar is `K21`.",
        "The boiler in the cellar, says Theodora, is from 2011.",
        "Penguins swim faster than seals.",
        "Yes.",
    ],
)
def test_what_it_does_not_say_is_not(sentence: str) -> None:
    """A number, quotation or name that is not there, other words, or no words at all."""
    assert not said(sentence, near=True)


def test_nearness_decides_where_words_do_not() -> None:
    """With some words in common it is the model that tells; with none or most it is not asked."""
    half = "Cold boiler water should push rather firmly."
    assert not said(half)
    assert said(half, near=True)
    asked: list[Sequence[str]] = []

    def is_near(sentence: str, others: Sequence[str]) -> bool:
        asked.append(others)
        return False

    for sentence in (half, "Penguins swim.", "The boiler is a Kessler K20."):
        supports([evidence(PASSAGE)], sentence, is_near)
    assert len(asked) == 1
    assert "Its pressure is 1.5 bar when cold." in asked[0]


def test_the_built_in_model_is_one_that_can_tell() -> None:
    """Words alone reject this; the model that ships with kb, whose measure is known, does not."""
    embedder = make_embedder(EmbedderChoice(kind="onnx"), threads=1)
    sentence = "Prune them at the time when forsythia is in flower."
    passage = "They are cut back when the forsythia blooms, to three or four buds."
    assert embedder.fingerprint in NEAR_MIN
    for given, expected in ((None, False), (lambda: embedder, True)):
        checker = CitationChecker([hit(passage, title="Roses")], given)
        assert checker.checked([f"{sentence} [1]"]).sentences[0].supported is expected


def test_a_time_is_one_number() -> None:
    """Its parts may stand elsewhere in the passage."""
    train = "The train arrives at 8:35. The card ends after six weeks."
    assert said("The train arrives at 08:35.", train)
    assert not said("The train arrives at 6:35.", train)


def test_passages_are_taken_together() -> None:
    """What two passages say in part, they say together."""
    both = ("The flat costs 870 euros.", "The garage costs 65 euros.")
    sentence = "The flat costs 870 euros, the garage 65."
    assert [said(sentence, one) for one in both] == [False, False]
    assert said(sentence, *both)


def test_capitals_mark_no_names_where_all_nouns_have_them() -> None:
    """In a language that writes nouns large, a noun that is not there is a word like others."""
    german = "Der Kessel im Keller ist von Kessler, und der Druck im Kessel liegt bei 1,5 Bar."
    assert said("Der Druck im Kessel ist 1.5 Bar im Haus.", german)
    assert not said("The boiler in the cellar, says House, is from 2011.")


def test_cjk_is_compared_by_its_words() -> None:
    """Sentences without blanks have words, too."""
    tea = "绿茶用七十度的水冲泡九十秒。"
    assert said("绿茶用七十度的水冲泡。", tea)
    assert not said("咖啡需要更热的牛奶。", tea)
