"""How are candidates found fast? In the lexical and the dense indexes, which follow the log."""

from kb.search.index.analysis import highlight_spans, normalize, terms
from kb.search.index.dense import DenseIndex
from kb.search.index.dense_files import folder_name, remove_vectors, unused_folders
from kb.search.index.hits import IndexHits, IndexStats
from kb.search.index.lexical import LexicalIndex
from kb.search.index.lexical_indexes import LexicalIndexes
from kb.search.index.log_follower import CatchUpReport

__all__ = [
    "CatchUpReport",
    "DenseIndex",
    "IndexHits",
    "IndexStats",
    "LexicalIndex",
    "LexicalIndexes",
    "folder_name",
    "highlight_spans",
    "normalize",
    "remove_vectors",
    "terms",
    "unused_folders",
]
