"""The background similarity of a model: the cosine that it gives to unrelated texts."""

from typing import Final

from kb.intake.embed.protocol import Embedder

# Everyday questions, and sections on other things: no pair is about the same.
_QUESTIONS: Final = (
    "how long do eggs take to boil",
    "which bus goes to the airport",
    "who painted the ceiling of the chapel",
    "can I plant roses in autumn",
    "how do I tune a guitar",
    "what does a lawyer cost",
    "is the museum open on Mondays",
    "how many players has a handball team",
    "why do cats purr",
    "when was the bridge built",
    "how do I get red wine out of a shirt",
    "what is the distance to the moon",
)
_SECTIONS: Final = (
    "Invoices are sent at the end of the month and are due within thirty days.",
    "The pump must be bled before the heating season, and the pressure noted.",
    "Passengers with much luggage board through the doors at the rear.",
    "Knead the dough until it comes off the bowl, then let it rest in the warm.",
    "The committee elects a chair and a treasurer for two years.",
    "Glaciers carry stones along, which scratch the rock below them.",
    "Sentences in the passive voice hide who is acting.",
    "Cut the wood across the grain with a fine saw, and sand the edge.",
    "The patient takes one tablet in the morning with a glass of water.",
    "Trading ceased in the harbour after the river had silted up.",
    "A chord of three notes is built from the first, third and fifth.",
    "Swallows return in April and nest below the roof.",
)


def background_of(embedder: Embedder) -> float:
    """The mean cosine of questions and sections that are unrelated.

    Raises ModelMissing or EmbedError.
    """
    import numpy as np

    query_vectors = np.stack([embedder.embed_query(question) for question in _QUESTIONS])
    return float((query_vectors @ embedder.embed_documents(_SECTIONS).T).mean())
