"""Passages, vectors and entities at rest."""

from collections.abc import Iterator

import numpy as np
import pytest
from builders import make_chunk, make_doc

from kb.errors import StoreDamaged
from kb.model.text import Chunk, Mention
from kb.store import chunks, docs
from kb.store.kv import WriteTxn
from kb.store.memory import MemoryEnvironment
from kb.store.records import ENTITIES

TAG = Mention(kind="hashtag", surface="#Rust", key="hashtag:rust")
MAIL = Mention(kind="email", surface="a@b.org", key="email:a@b.org")
HASH = "ab" * 16


@pytest.fixture
def txn() -> Iterator[WriteTxn]:
    with MemoryEnvironment().write() as txn:
        yield txn


def put(txn: WriteTxn, source_no: int, *new: tuple[int, str, tuple[Mention, ...]]) -> list[int]:
    made = [
        make_chunk(no, text, source_no=source_no, ordinal=ordinal, mentions=mentions)
        for ordinal, (no, text, mentions) in enumerate(new)
    ]
    gone = chunks.replace_all(txn, source_no, made, {no: list(m) for no, _, m in new})
    return [chunk.no for chunk in gone]


def texts(found: list[Chunk]) -> list[str]:
    return [chunk.text for chunk in found]


def test_passages_in_reading_order(txn: WriteTxn) -> None:
    """A source's passages come back in their order, whatever their numbers."""
    assert put(txn, 1, (7, "one", ()), (3, "two", ()), (5, "three", ())) == []
    assert texts(chunks.of_source(txn, 1)) == ["one", "two", "three"]
    assert chunks.numbers_of(txn, 1) == [7, 3, 5]
    assert list(chunks.all_numbers(txn)) == [3, 5, 7]


def test_a_passage_by_number_and_by_id(txn: WriteTxn) -> None:
    """Number and id lead to the same passage; unknown ones to None."""
    put(txn, 1, (7, "one", ()))
    chunk = chunks.get(txn, 7)
    assert chunk is not None
    assert chunks.by_id(txn, chunk.chunk_id) == chunk
    assert (chunks.get(txn, 8), chunks.by_id(txn, "c0")) == (None, None)


def test_neighbours(txn: WriteTxn) -> None:
    """The passage at a place, and None before the first, after the last and in no source."""
    put(txn, 1, (7, "one", ()), (3, "two", ()))
    put(txn, 2, (9, "else", ()))
    found = [chunks.at(txn, 1, ordinal) for ordinal in (-1, 0, 1, 2)]
    assert [chunk and chunk.text for chunk in found] == [None, "one", "two", None]
    assert chunks.at(txn, 3, 0) is None


def test_replacing_returns_what_went(txn: WriteTxn) -> None:
    """Passages kept under their number stay; the others go from every table and are returned."""
    put(txn, 1, (1, "one", ()), (2, "two", ()), (3, "three", ()))
    assert put(txn, 1, (3, "three", ()), (4, "four", ())) == [1, 2]
    assert chunks.numbers_of(txn, 1) == [3, 4]
    assert list(chunks.all_numbers(txn)) == [3, 4]
    assert [txn.count(t) for t in ("chunks", "chunk_ids", "source_chunks")] == [2, 2, 2]


def test_replacing_with_more(txn: WriteTxn) -> None:
    """A source may grow, and another's passages are not touched."""
    put(txn, 2, (9, "else", ()))
    put(txn, 1, (1, "one", ()))
    put(txn, 1, (2, "zero", ()), (1, "one", ()), (3, "two", ()))
    assert texts(chunks.of_source(txn, 1)) == ["zero", "one", "two"]
    assert texts(chunks.of_source(txn, 2)) == ["else"]


def test_the_same_text_under_a_new_number(txn: WriteTxn) -> None:
    """A passage id taken over by a new number leads to the new one."""
    put(txn, 1, (1, "one", ()))
    chunk_id = make_chunk(1, "one").chunk_id
    assert put(txn, 1, (2, "one", ())) == [1]
    found = chunks.by_id(txn, chunk_id)
    assert found is not None
    assert found.no == 2


def test_deleting_all(txn: WriteTxn) -> None:
    """Nothing of a source stays in any table, and deleting it again returns nothing."""
    put(txn, 1, (1, "one", (TAG,)), (2, "two", (TAG, MAIL)))
    assert [chunk.no for chunk in chunks.delete_all(txn, 1)] == [1, 2]
    assert chunks.delete_all(txn, 1) == []
    tables = ("chunks", "chunk_ids", "source_chunks", "entities", "entity_chunks")
    assert [txn.count(table) for table in tables] == [0] * 5


def test_who_mentions_an_entity(txn: WriteTxn) -> None:
    """Passages of every source that mention it come by number; its surface is the first one's."""
    put(txn, 2, (300, "two", (TAG,)))
    put(txn, 1, (2, "one", (Mention(kind="hashtag", surface="#RUST", key=TAG.key), MAIL)))
    assert list(chunks.mentioning(txn, TAG.key)) == [2, 300]
    assert list(chunks.mentioning(txn, MAIL.key)) == [2]
    assert list(chunks.mentioning(txn, "hashtag:rus")) == []
    entity = ENTITIES.get(txn, TAG.key.encode())
    assert entity is not None
    assert entity.surface == "#Rust"


def test_an_entity_goes_with_its_last_mention(txn: WriteTxn) -> None:
    """Edges go with their passage; the entity stays while another passage mentions it."""
    put(txn, 1, (1, "one", (TAG,)), (2, "two", (TAG,)))
    put(txn, 1, (2, "two", (TAG,)))
    assert (list(chunks.mentioning(txn, TAG.key)), txn.count("entities")) == ([2], 1)
    put(txn, 1, (3, "three", ()))
    assert (txn.count("entity_chunks"), txn.count("entities")) == (0, 0)


def test_a_kept_passage_may_lose_a_mention(txn: WriteTxn) -> None:
    """Where a passage stays and an entity is no longer read from it, the edge goes."""
    put(txn, 1, (1, "one", (TAG, MAIL)))
    put(txn, 1, (1, "one", (MAIL,)))
    assert list(chunks.mentioning(txn, TAG.key)) == []
    assert (list(chunks.mentioning(txn, MAIL.key)), txn.count("entities")) == ([1], 1)


def test_an_entity_moves_to_a_new_passage(txn: WriteTxn) -> None:
    """An edited passage under a new number takes the entity over."""
    put(txn, 1, (1, "one", (TAG,)))
    put(txn, 1, (2, "one, edited", (TAG,)))
    assert (list(chunks.mentioning(txn, TAG.key)), txn.count("entities")) == ([2], 1)


def test_entities_of_any_length(txn: WriteTxn) -> None:
    """An entity key longer than a store key can be is kept apart from its neighbours."""
    long = [Mention(kind="url", surface="u", key="url:" + "x" * 600 + end) for end in "ab"]
    put(txn, 1, (1, "one", (long[0],)), (2, "two", (long[1],)))
    assert [list(chunks.mentioning(txn, m.key)) for m in long] == [[1], [2]]


def test_live_is_of_an_active_doc(txn: WriteTxn) -> None:
    """A passage is live with its source's newest doc, and not once that is a tombstone."""
    put(txn, 1, (1, "one", ()))
    assert chunks.get_active(txn, 1) is None
    doc = make_doc(1)
    docs.put_new_version(txn, doc)
    found = chunks.get_active(txn, 1)
    assert found is not None
    assert (found[0].text, found[1]) == ("one", doc)
    docs.replace(txn, make_doc(1, status="tombstoned"))
    assert (chunks.get_active(txn, 1), chunks.get_active(txn, 2)) == (None, None)


def test_a_vector_comes_back(txn: WriteTxn) -> None:
    """Float32 in, the same float32 out, under its model and text only."""
    vector = np.array([0.5, -1.0, 3.25], dtype=np.float32)
    chunks.put_vector(txn, "model-a", HASH, vector)
    found = chunks.get_vector(txn, "model-a", HASH, 3)
    assert found is not None
    assert (found.dtype, found.tolist()) == (np.dtype("<f4"), [0.5, -1.0, 3.25])
    assert chunks.has_vector(txn, "model-a", HASH)
    for fingerprint, text_hash in (("model-b", HASH), ("model-a", "cd" * 16)):
        assert not chunks.has_vector(txn, fingerprint, text_hash)
        assert chunks.get_vector(txn, fingerprint, text_hash, 3) is None


@pytest.mark.parametrize("dim", [0, 2, 4])
def test_a_vector_of_another_size_is_damage(txn: WriteTxn, dim: int) -> None:
    """A stored vector that is not of the size asked for is StoreDamaged."""
    chunks.put_vector(txn, "model-a", HASH, np.zeros(3, dtype=np.float32))
    with pytest.raises(StoreDamaged, match="a vector of 12 bytes"):
        chunks.get_vector(txn, "model-a", HASH, dim)


def test_a_vector_with_a_flipped_bit_is_damage(txn: WriteTxn) -> None:
    """A vector's bytes are under the checksum too."""
    chunks.put_vector(txn, "model-a", HASH, np.ones(3, dtype=np.float32))
    [(key, stored)] = txn.scan("vectors")
    txn.put("vectors", key, stored[:-1] + bytes([stored[-1] ^ 1]))
    with pytest.raises(StoreDamaged, match="checksum"):
        chunks.get_vector(txn, "model-a", HASH, 3)
