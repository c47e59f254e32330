"""Ids that say the same on every run."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.model.ids import DocId, Lsid, chunk_id, doc_id, job_id, sha256_hex

A, B = Lsid("file:///a"), Lsid("file:///b")


def test_ids_are_pinned() -> None:
    """These very ids are in people's stores and links: they must never change."""
    assert doc_id(A, 1) == "db53d008e1fab1a519d68"
    assert chunk_id(A, "text", 0) == "c4c828b3ff99a54c537e0bb5e"
    assert job_id(7, b"\x0a\xff") == "j0000000000070aff"


def test_a_passage_keeps_its_id_across_versions() -> None:
    """Source, text and occurrence alone make a passage's id."""
    assert chunk_id(A, "t", 0) == chunk_id(A, "t", 0)
    assert (
        len({chunk_id(A, "t", 0), chunk_id(B, "t", 0), chunk_id(A, "u", 0), chunk_id(A, "t", 1)})
        == 4
    )


def test_a_doc_id_is_of_source_and_version() -> None:
    """Each version of each source has its own id, of 21 characters."""
    ids = {doc_id(lsid, version) for lsid in (A, B) for version in (1, 2, 11)}
    assert len(ids) == 6
    assert {(len(i), i[0]) for i in ids} == {(21, "d")}


@settings(deadline=None, max_examples=60)
@given(
    st.tuples(st.text(max_size=4), st.text(max_size=4)),
    st.tuples(st.text(max_size=4), st.text(max_size=4)),
)
def test_parts_do_not_run_together(one: tuple[str, str], other: tuple[str, str]) -> None:
    """Moving a character from one part to the next makes another id."""
    same = chunk_id(Lsid(one[0]), one[1], 0) == chunk_id(Lsid(other[0]), other[1], 0)
    assert same == (one == other)


def test_text_is_hashed_as_utf8() -> None:
    """Text and its UTF-8 bytes hash alike; a lone surrogate is no error."""
    assert sha256_hex("标签") == sha256_hex("标签".encode())
    assert len(sha256_hex("\udcff")) == 64


@pytest.mark.parametrize("low", [9, 99, 10**11])
def test_job_ids_sort_by_number(low: int) -> None:
    """Jobs sort by age in the order of their ids."""
    assert job_id(low, b"\xff") < job_id(low + 1, b"\x00")
    assert isinstance(DocId("d1"), str)
