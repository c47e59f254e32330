"""A passage that is a bare title says nothing, and does not come before what its doc says."""

from search_home import SearchHome

from kb.model.doc import OPERATOR
from kb.store import chunks

STEPS = " ".join(f"Step {number} closes a valve and opens a tap." for number in range(60))
# The section fits a passage of its own, and the title above it does not fit in.
HANDBOOK = "# Boiler handbook\n\n## Starting\n\n### In winter\n\n{}\n\n## Boiler handbook index\n"


def bare(home: SearchHome, source_no: int) -> list[str]:
    """The texts of the passages that are titles alone."""
    with home.store.read() as txn:
        texts = [chunk.text for chunk in chunks.of_source(txn, source_no)]
    assert len(texts) > 1
    return [text for text in texts if all(line[:1] in ("#", "") for line in text.splitlines())]


def test_a_bare_title_comes_after_what_the_doc_says(home: SearchHome) -> None:
    """And after what others say; it is still found."""
    doc = home.give("handbook.md", HANDBOOK.format(STEPS))
    home.give("radio.md", "# Radio\n\nThe boiler disturbs it.")
    titles = bare(home, doc.source_no)
    assert titles
    for mode in ("hybrid", "lexical"):
        for query in ("boiler handbook", "boiler handbook index"):
            hits = home.search(query, mode=mode, k=20).hits
            first = next(place for place, hit in enumerate(hits) if hit.text in titles)
            assert all(hit.text in titles for hit in hits[first:]), query
            assert {hit.text for hit in hits[:first] if hit.doc_id == doc.doc_id}


def test_a_doc_of_a_title_alone_is_found_by_it(home: SearchHome) -> None:
    """It is all that there is."""
    only = home.give("only.md", "# Boiler handbook\n")
    home.give("radio.md", "# Radio\n\nThe handbook of a radio.")
    assert home.search("boiler handbook", OPERATOR).hits[0].doc_id == only.doc_id
