"""Which candidates that meaning cannot judge have the whole query in their names?

A picture without words has a name and no vector; so has a song, and an artist and an album besides.
Meaning would put each of them after every text, also after those that have nothing to do with the
query.
"""

from typing import TYPE_CHECKING, Final

from kb.model.ids import ChunkNo
from kb.model.source import name_and_folders
from kb.search.candidates import Candidates, RankedChunks
from kb.search.index.analysis import terms, terms_held

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# So many are looked at, the best by words first, and each counts a little less than the one
# before: a folder of photos of one name does not fill the first page.
_LOOKED_AT: Final = 10
_STEP: Final = 0.05


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
