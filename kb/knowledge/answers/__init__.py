"""How is a question answered? The chunks that a search found become cited sentences.

A language model writes the sentences, and each is checked against what it cites. Without a model
the best sentences of the chunks are quoted. The chunks are handed in: nothing here searches.
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
