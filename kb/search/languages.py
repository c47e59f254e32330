"""Is a chunk in the language of the question? Pure.

Words say nothing about a chunk in another language, so that a model that reads many languages
ranks it by meaning alone. The pairs of adjacent letters tell languages apart (Cavnar and Trenkle,
1994), also without knowing which they are: the question and what its words find give the pairs of
its language, and a chunk is foreign that has few of them.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LIKENESS_MIN: Final = 0.55
"""From which on a text of 400 characters is in the language. Those of one language have 0.74 and
more (95 in 100), English and its neighbours 0.4 to 0.55, other pairs 0.3 and less."""
_CHARS_READ: Final = 400
_SAMPLES: Final = 5
_SAMPLED: Final = 20
_JUDGED: Final = 50
_WORD: Final = re.compile(r"[^\W\d_]+")
# Signs for words and syllables have too many pairs; that they are of one script tells enough.
_HAN: Final = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_KANA: Final = re.compile("[\u3041-\u30ff]")
_HANGUL: Final = re.compile("[\u1100-\u11ff\uac00-\ud7a3]")

_SIGN_PAIRS: Final = 12
_SIGN_LETTERS: Final = 5

LetterPairs = Mapping[tuple[str, str], float]
"""How often each pair of letters occurs, as a vector of length 1; empty without letters."""


def letter_pairs(text: str) -> LetterPairs:
    """The pairs of adjacent letters in the first 400 characters, words apart."""
    start = text[:_CHARS_READ].lower()
    if not start.isascii():
        start = _HANGUL.sub("한", _KANA.sub("か", _HAN.sub("漢", start)))
    letters = " ".join(_WORD.findall(start))
    return _of_length_1(Counter(pairwise(letters)))


def pooled(texts: Iterable[LetterPairs]) -> LetterPairs:
    """The mean of several texts' pairs."""
    total: defaultdict[tuple[str, str], float] = defaultdict(float)
    for pairs in texts:
        for pair, share in pairs.items():
            total[pair] += share
    return _of_length_1(total)


def likeness(one: LetterPairs, other: LetterPairs) -> float:
    """The cosine of two texts' pairs: 1 for the same pairs, 0 for none in common."""
    few, many = sorted((one, other), key=len)
    return math.fsum(share * many.get(pair, 0.0) for pair, share in few.items())


def foreign_places(
    query: str,
    lexical: "NDArray[np.float64]",
    dense: "NDArray[np.float64]",
    read_at: Callable[[int], tuple[int, str]],
    expect: Callable[[list[int]], None] = lambda _: None,
) -> "NDArray[np.bool_]":
    """Which candidates are in another language than the query, of the best by meaning. Shape (n,).

    `lexical` and `dense` are their scores, NaN where there is none; `read_at` gives the number of a
    candidate's source, and its text; `expect` is told before which it is asked. None is foreign
    where words find less than five sources: a rare word, or one doc of its own kind, says too
    little of a language.
    """
    import numpy as np

    marked = np.zeros(len(lexical), dtype=bool)
    samples: dict[int, str] = {}
    sampled, judged = _best(lexical, _SAMPLED), _best(dense, _JUDGED)
    expect([*sampled, *judged])
    for place in sampled:
        source_no, text = read_at(place)
        samples.setdefault(source_no, text)
        if len(samples) == _SAMPLES:
            break
    else:
        return marked
    language = pooled(map(letter_pairs, (query, *samples.values())))
    for place in judged:
        _, text = read_at(place)
        marked[place] = is_foreign(text, letter_pairs(text), language)
    return marked


def is_foreign(text: str, pairs: LetterPairs, language: LetterPairs) -> bool:
    """Whether a text of these pairs is in another language than the pairs of that one."""
    # A short text has few of the pairs of its language, unless there are hardly any.
    length = len(text) * (_SIGN_LETTERS if len(pairs) <= _SIGN_PAIRS else 1)
    share = math.sqrt(min(1.0, length / _CHARS_READ))
    return bool(pairs) and likeness(pairs, language) < LIKENESS_MIN * share


def _best(scores: "NDArray[np.float64]", count: int) -> list[int]:
    import numpy as np

    order: list[int] = np.argsort(-scores, kind="stable")[:count].tolist()
    return [place for place in order if not np.isnan(scores[place])]


def _of_length_1(counts: Mapping[tuple[str, str], float]) -> LetterPairs:
    length = math.sqrt(math.fsum(count * count for count in counts.values()))
    return {pair: count / length for pair, count in counts.items()} if length else {}
