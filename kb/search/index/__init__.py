"""How are candidates found fast? In the lexical and the dense indexes, which follow the log."""

from kb.search.index.dense import DenseIndex
from kb.search.index.dense_files import discard, folder_name, folders_of_others
from kb.search.index.follow import CatchUp
from kb.search.index.lexical import LexicalIndex
from kb.search.index.lexical_all import LexicalIndexes
from kb.search.index.lock import file_lock
from kb.search.index.result import CacheStats, Hits
from kb.search.index.words import highlight_spans, prepare, terms

__all__ = [
    "CacheStats",
    "CatchUp",
    "DenseIndex",
    "Hits",
    "LexicalIndex",
    "LexicalIndexes",
    "discard",
    "file_lock",
    "folder_name",
    "folders_of_others",
    "highlight_spans",
    "prepare",
    "terms",
]
