"""Reranks passages by the order of their words. A toy: it knows who bites whom, not what biting is."""

import re

from kb.plugins import Reranker, RerankSettings


def pairs(text):
    """The words of a text, each with the one after it."""
    words = re.findall(r"\w+", text.casefold())
    return set(zip(words, words[1:]))


class InOrder:
    """Scores a passage by the query's pairs of words that stand side by side in it."""

    def score(self, query, passages):
        """A number from 0 to 1 for each passage, in their order."""
        wanted = pairs(query)
        return [len(wanted & pairs(passage)) / max(1, len(wanted)) for passage in passages]


def make(settings: RerankSettings, threads: int) -> Reranker:
    """The one reranker that there is; `settings.model` could name another."""
    return InOrder()
