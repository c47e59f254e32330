"""Embeds texts by their trigrams of letters. A toy: it finds misspelled words, not meaning."""

import re
import zlib

import numpy as np

from kb.plugins import ANY_SCRIPT, Embedder, EmbedderChoice


class Trigrams:
    """An embedder without a model: every text has its vector at once."""

    fingerprint = "trigrams:1"
    dim = 512
    tokens_max = 512
    scripts = ANY_SCRIPT

    def embed_documents(self, texts):
        """A unit vector for each text, shape (len(texts), dim)."""
        return np.array([self.embed_query(text) for text in texts], np.float32).reshape(-1, 512)

    def embed_query(self, text):
        """The unit vector of a text."""
        vector = np.zeros(self.dim, np.float32)
        vector[0] = 1e-6  # A text without letters has a vector, too.
        folded = f"  {text.casefold()} "
        for start in range(len(folded) - 2):
            vector[zlib.crc32(folded[start : start + 3].encode(errors="replace")) % self.dim] += 1
        return vector / np.linalg.norm(vector)

    def token_spans(self, text):
        """Where each word lies."""
        return [match.span() for match in re.finditer(r"\w+", text)]

    def token_spans_batch(self, texts):
        """Where the words of each text lie."""
        return [self.token_spans(text) for text in texts]

    def count_tokens(self, texts):
        """How many words each text has."""
        return [len(spans) for spans in self.token_spans_batch(texts)]


def make(choice: EmbedderChoice, threads: int) -> Embedder:
    """The one model that there is; `choice.model` could name another."""
    return Trigrams()
