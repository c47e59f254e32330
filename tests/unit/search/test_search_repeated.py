"""What mails repeat of others gives way to the mail that says it."""

from collections.abc import Sequence

import numpy as np
from builders import make_chunk, make_doc

from kb.model.config import SearchSettings
from kb.model.doc import Doc
from kb.model.ids import ChunkNo
from kb.model.mail import MailHead
from kb.model.text import Chunk
from kb.search.candidates import Candidates
from kb.search.order import Ordering

SAID = "The kettle in the cellar hums since Monday, and the pump beside it leaks a little. "
HEADS = "# Re: Kettle\n\nFrom: Ada  \nTo: Bea\n\n"
EARLIER = "## Earlier mail: Ada, Monday\n\n"


class Rows:
    """Passages of mails, those after the first `own` of them repeated."""

    def __init__(self, texts: list[str], own: int) -> None:
        self.texts = texts
        self.own = own

    def expect(self, nos: Sequence[int]) -> None:
        """Nothing: it has all in memory."""

    def admit(self, no: int) -> tuple[Chunk, Doc] | None:
        head = MailHead(earlier=() if no <= self.own else (0,))
        return make_chunk(no=ChunkNo(no), text=self.texts[no - 1]), make_doc(mail=head)

    def is_bare_title(self, chunk: Chunk, doc: Doc) -> bool:
        return False


def order(texts: list[str], own: int, cosines: list[float], k: int) -> list[int]:
    """The numbers of the hits of passages with these cosines, none like another."""
    count = len(texts)
    candidates = Candidates(
        nos=list(range(1, count + 1)),
        lexical=np.full(count, np.nan),
        dense=np.array(cosines),
        vectors=np.eye(count, dtype=np.float32),
        lexical_rank={},
        dense_rank={},
    )
    hits = Ordering(SearchSettings(), k).order(candidates, None, [], Rows(texts, own)) or []
    return [int(hit.chunk.no) for hit in hits]


def test_the_mail_itself_comes_before_all_that_repeat_it() -> None:
    """Whatever its own heads make of its score, and however many hits are wanted."""
    others = [f"Another mail, number {number}." for number in range(20)]
    texts = [HEADS + SAID + "Yours, Ada", *others, *[EARLIER + SAID] * 5]
    cosines = [0.5, *(0.8 - number / 100 for number in range(20)), *(0.9, 0.89, 0.88, 0.87, 0.86)]
    whole = order(texts, 21, cosines, 26)
    assert whole[:4] == [1, 2, 3, 4]
    for k in range(1, 26):
        assert order(texts, 21, cosines, k) == whole[:k]


def test_one_of_those_that_repeat_a_mail_stands_for_it() -> None:
    """Where the mail itself is not here, with its own score."""
    others = [f"{HEADS}Another mail, number {number}." for number in range(20)]
    texts = [*others, EARLIER + SAID, EARLIER + SAID.replace(" and", "\nand")]
    cosines = [*(0.8 - number / 100 for number in range(20)), 0.9, 0.89]
    assert order(texts, 20, cosines, 2) == [21, 1]
