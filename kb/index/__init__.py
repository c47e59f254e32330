"""Where might it be? Caches of words and of vectors that follow the store's change log."""

from kb.index.dense import DenseIndex
from kb.index.dense_files import discard, folder_name, folders_of_others
from kb.index.follow import CatchUp
from kb.index.lexical import LexicalIndex
from kb.index.lexical_all import LexicalIndexes
from kb.index.lock import file_lock
from kb.index.result import CacheStats, Hits
from kb.index.words import highlight_spans, prepare, terms

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
