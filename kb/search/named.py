"""Which candidates have the whole query in their names?

Of those that meaning cannot judge, names count as meaning: a picture without words has a name and
no vector; so has a song, and an artist and an album besides. Meaning would put each of them after
every text, also after those that have nothing to do with the query.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kb.model.doc import Doc
from kb.model.ids import ChunkNo
from kb.model.source import name_and_folders, names_of
from kb.model.text import Chunk
from kb.search.candidates import Candidates, RankedChunks
from kb.search.index.analysis import spelled_words, terms, terms_held

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Who types a doc's whole name wants that doc, whatever others say of it.
_NAME_BOOST: Final = 2.0
# So many are looked at, the best by words first, and each counts a little less than the one
# before: a folder of photos of one name does not fill the first page.
_LOOKED_AT: Final = 10
_STEP: Final = 0.05
_DIGITS: Final = 6


def name_boosts(
    called: frozenset[int],
    nos: Sequence[int],
    fused: "Sequence[float] | NDArray[np.float64]",
    chunks: RankedChunks,
    query: str,
) -> list[float]:
    """The factor for each candidate's name, 1 where its doc does not go by the query.

    `nos` are the candidates and `fused` their scores. Of several docs that go by the query, those
    that are spelled like it count alone, and as much as the best of all: who types `job.py` wants
    it, and not `jobs.py`, whatever that says of jobs.
    """
    namesakes = [place for place, no in enumerate(nos) if no in called]
    best, factor = namesakes, _NAME_BOOST
    if len(namesakes) > 1:
        chunks.expect([nos[place] for place in namesakes])
        wanted = spelled_words(query)
        alike = [place for place in namesakes if _is_spelled(wanted, chunks.admit(nos[place]))]
        top = max(fused[place] for place in alike or namesakes)
        if alike and top > 0:
            best, most = alike, max(fused[place] for place in namesakes)
            factor = round(_NAME_BOOST * float(most / top), _DIGITS)
    boosts = [1.0] * len(nos)
    for place in best:
        boosts[place] = factor
    return boosts


def _is_spelled(words: list[str], admitted: tuple[Chunk, Doc] | None) -> bool:
    """Whether the doc of a chunk has a name of just these words."""
    names = names_of(admitted[1]) if admitted else ()
    return any(spelled_words(name) == words for name in names)


def named_places(
    candidates: Candidates, mute: "NDArray[np.intp]", chunks: RankedChunks, query: str
) -> "NDArray[np.intp] | None":
    """Positions of these, the best by words first; None where one that is read may not appear.

    `mute` are the positions of those that have no vector.
    """
    import numpy as np

    wanted = frozenset(terms(query))
    best = mute[np.argsort(-candidates.lexical[mute], kind="stable")][:_LOOKED_AT]
    chunks.expect([candidates.nos[place] for place in best])
    named: list[int] = []
    for place in best:
        admitted = chunks.admit(ChunkNo(candidates.nos[place]))
        if admitted is None:
            return None
        chunk, doc = admitted
        name, _ = name_and_folders(doc.source)
        names = f"{name}\n{doc.label}\n{_stated(chunk.text)}"
        if doc.by_name and terms_held(names, wanted) == wanted:
            named.append(place)
    return np.array(named, dtype=np.intp)


def _stated(text: str) -> str:
    """What the file says of itself without the names of the facts: album, maker, what is in it."""
    return "\n".join(
        line.removeprefix("- ") if line.startswith("- ") else line.partition(": ")[2]
        for line in text.split("\n")
    )


def with_names(dense: "NDArray[np.float64]", named: "NDArray[np.intp]") -> "NDArray[np.float64]":
    """The cosines, those named counting as the nearest, each further one as a little less near."""
    import numpy as np

    top, low = float(np.nanmax(dense)), float(np.nanmin(dense))
    counted = dense.copy()
    counted[named] = top - (top - low) * _STEP * np.arange(len(named))
    return counted
