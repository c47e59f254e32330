"""Which of the best candidates answer the query best? A reranker reads the query with each."""

from kb.search.rerank.reranking import Candidate, Reranking, is_of_reranking

__all__ = ["Candidate", "Reranking", "is_of_reranking"]
