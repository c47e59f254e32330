"""How is one short text cut into tokens, without loading a vocabulary of 250,000?

A Unigram tokenizer chooses among the pieces of its vocabulary that occur in the text, and no other
piece has a say. So a file keeps all pieces sorted; those that occur in a text are looked up in it,
and a tokenizer of these few gives the same tokens in milliseconds, where the whole one takes a
second to load and 250 MB.

The file, little-endian: count of pieces and length of the head (uint32), scores (float64), ids and
the end of each piece (uint32), the head, the pieces. All in the order of the pieces' UTF-8. The
head is the tokenizer's JSON with the pieces alone that are always needed, and their ids.
"""

import json
import struct
import sys
from array import array
from typing import Any, Final

_START: Final = struct.Struct("<II")


def packed(tokenizer: bytes) -> bytes:
    """The file for a tokenizer.json whose model is Unigram. Raises ValueError for another model."""
    whole: dict[str, Any] = json.loads(tokenizer)
    if whole["model"]["type"] != "Unigram":
        raise ValueError(f"the tokenizer's model is {whole['model']['type']}, not Unigram")
    vocab: list[tuple[str, float]] = whole["model"]["vocab"]
    # What is unknown scores less than the lowest piece. Special tokens are met by their ids.
    lowest = min(range(len(vocab)), key=lambda ident: vocab[ident][1])
    special = (token["id"] for token in whole["added_tokens"])
    always = sorted({whole["model"]["unk_id"], lowest, *special})
    model = {**whole["model"], "vocab": [vocab[ident] for ident in always], "ids": always}
    head = json.dumps({**whole, "model": model, "added_tokens": []}).encode()

    order = sorted(range(len(vocab)), key=lambda ident: vocab[ident][0].encode())
    pieces = [vocab[ident][0].encode() for ident in order]
    scores = array("d", (vocab[ident][1] for ident in order))
    ends, end = array("I"), 0
    for piece in pieces:
        end += len(piece)
        ends.append(end)
    columns: tuple[array[Any], ...] = (scores, array("I", order), ends)
    numbers = b"".join(_little_endian(column) for column in columns)
    return _START.pack(len(order), len(head)) + numbers + head + b"".join(pieces)


class Pieces:
    """Cuts short texts into tokens by such a file; any number of threads may ask."""

    def __init__(self, raw: bytes) -> None:
        """Raise ValueError or struct.error where the bytes are no such file."""
        from tokenizers import Tokenizer

        self._raw = raw
        self._count, head_bytes = _START.unpack_from(raw)
        self._scores = _START.size
        self._idents = self._scores + 8 * self._count
        self._ends = self._idents + 4 * self._count
        head_at = self._ends + 4 * self._count
        self._pieces = head_at + head_bytes
        head: dict[str, Any] = json.loads(raw[head_at : self._pieces])
        model = head["model"]
        self._always = list(zip(model.pop("ids"), map(tuple, model["vocab"]), strict=True))
        by_ident = [ident for ident, _ in self._always]
        model["unk_id"] = self._unknown = by_ident.index(model["unk_id"])
        self._parts = Tokenizer.from_str(json.dumps(head))

    def ids(self, text: str) -> list[int]:
        """Ids of the text's tokens, special ones included."""
        from tokenizers import Tokenizer
        from tokenizers.models import Unigram

        parts = self._parts
        words = parts.pre_tokenizer.pre_tokenize_str(parts.normalizer.normalize_str(text))
        rows = dict(self._always)
        for word in {word for word, _ in words}:
            for start in range(len(word)):
                self._add(rows, word[start:])
        few = Tokenizer(Unigram(list(rows.values()), self._unknown, byte_fallback=False))
        few.normalizer, few.pre_tokenizer = parts.normalizer, parts.pre_tokenizer
        places = list(rows)
        first, last = self._around()
        found = few.encode(text, add_special_tokens=False).ids
        return [*first, *(places[place] for place in found), *last]

    def _around(self) -> tuple[list[int], list[int]]:
        """What the tokenizer puts before and after a text."""
        empty = self._parts.encode("").ids
        return empty[:1], empty[1:]

    def _add(self, rows: dict[int, tuple[str, float]], text: str) -> None:
        """Add the pieces that the text starts with to `rows`, by id."""
        for end in range(1, len(text) + 1):
            piece = text[:end].encode()
            place = self._place(piece)
            if place == self._count or not (here := self._piece(place)).startswith(piece):
                return
            if here == piece:
                (score,) = struct.unpack_from("<d", self._raw, self._scores + 8 * place)
                (ident,) = struct.unpack_from("<I", self._raw, self._idents + 4 * place)
                rows[ident] = (text[:end], score)

    def _place(self, piece: bytes) -> int:
        """Where the piece is or would be."""
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._piece(middle) < piece:
                low = middle + 1
            else:
                high = middle
        return low

    def _piece(self, place: int) -> bytes:
        if place == 0:
            start, (end,) = 0, struct.unpack_from("<I", self._raw, self._ends)
        else:
            start, end = struct.unpack_from("<II", self._raw, self._ends + 4 * (place - 1))
        return self._raw[self._pieces + start : self._pieces + end]


def _little_endian(column: "array[Any]") -> bytes:
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()
