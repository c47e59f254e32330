"""Words one edit away are the same, however they are found."""

from itertools import product

import pytest
from tantivy import Document

from kb.search.index.lexical_query import near_holders
from kb.search.index.lexical_tantivy import create_index, first_holders, holders

WORDS = (
    *map("".join, product("abc1", repeat=5)),
    *(
        "abca",
        "abcabc",
        "αbcab",
        "abcßb",
        "abжab",
        "漢字",
        "a漢cab",
        "abca\u05d0",
        "bacab",
        "bbacab",
    ),
    *("characteristics", "charakteristics", "haracteristics", "responsibilityabcdef"),
)


@pytest.mark.parametrize(
    "word", ["abcab", "aabca", "bacac", "caracteristics", "responsibilityabcde"]
)
def test_one_edit(word: str) -> None:
    index = create_index(None)
    with index.writer(15_000_000, 1) as writer:
        for no, held in enumerate(WORDS):
            document = Document()
            document.add_text("spelled", held)
            document.add_unsigned("no", no)
            document.add_unsigned("source_no", 1)
            writer.add_document(document)
    index.reload()
    searcher = index.searcher()
    pattern, fuzzy = (
        near_holders(word, 1, has_han=has_han)(index.schema) for has_han in (True, False)
    )
    assert pattern is not None
    assert fuzzy is not None
    expected = {no for no in holders(searcher, fuzzy, "no") if "漢" not in WORDS[no]}
    assert holders(searcher, pattern, "no") == expected
    assert first_holders(searcher, pattern, 3) == sorted(expected)[:3]
