"""How is a question answered? The passages that a search found become cited sentences.

Useful with a language model, whose sentences are checked against what they cite, and without one,
where the best sentences of the passages are quoted. Not for finding passages: they are handed in.
"""

from kb.knowledge.answers.answer import NOT_SAID, NOTHING_FOUND, Answer, RawSource, Sentence, Source
from kb.knowledge.answers.ask import AnswerResources, ask, raw_sources

__all__ = [
    "NOTHING_FOUND",
    "NOT_SAID",
    "Answer",
    "AnswerResources",
    "RawSource",
    "Sentence",
    "Source",
    "ask",
    "raw_sources",
]
