"""Ids: derived from content where equal things must meet, so that a second run says the same."""

import hashlib
from typing import Final, NewType

DocId = NewType("DocId", str)
ChunkId = NewType("ChunkId", str)
JobId = NewType("JobId", str)
Lsid = NewType("Lsid", str)
# A passage's and a source's small number: what the caches are keyed by. Never reused in a home.
ChunkNo = NewType("ChunkNo", int)
SourceNo = NewType("SourceNo", int)

ID_PREFIX_MIN: Final = 4
_DOC_HEX = 20
_CHUNK_HEX = 24
_GENERATION_PREFIX: Final = "birth:"


def sha256_hex(data: bytes | str) -> str:
    """SHA-256 as 64 hex digits; text is hashed as UTF-8, lone surrogates kept."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()


def _hash_parts(parts: tuple[str, ...], digits: int) -> str:
    # Lengths in front, so that ("ab", "c") and ("a", "bc") differ.
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return sha256_hex(joined)[:digits]


def doc_id(lsid: Lsid, version: int) -> DocId:
    """The id of one version of a logical source."""
    return DocId("d" + _hash_parts((lsid, str(version)), _DOC_HEX))


def generation_lsid(place: Lsid, generation: int) -> Lsid:
    """The lsid of the `birth`th source, from 1, that began at a place.

    A place, who owns what is handed in there being part of it, is the birthplace of one source
    after another; together with `birth` it names one of them. No place starts with `birth:`.
    """
    return place if generation == 1 else Lsid(f"{_GENERATION_PREFIX}{generation}:{place}")


def split_generation(lsid: Lsid) -> tuple[Lsid, int]:
    """The birthplace and the birth number that an lsid is made of."""
    if not lsid.startswith(_GENERATION_PREFIX):
        return lsid, 1
    number, _, place = lsid.removeprefix(_GENERATION_PREFIX).partition(":")
    return Lsid(place), int(number)


def chunk_id(lsid: Lsid, text: str, occurrence: int) -> ChunkId:
    """The id of a passage: its source, its text, and which of equal texts it is (from 0).

    Neither doc_id nor version enters, so an unchanged passage keeps its id across edits.
    """
    return ChunkId("c" + _hash_parts((lsid, text, str(occurrence)), _CHUNK_HEX))


def job_id(now_ms: int, random_bytes: bytes) -> JobId:
    """The id of a job that is asked for now, with a few random bytes; later ones sort behind it.

    It is no number, for whoever is told theirs would count the jobs of others by it.
    """
    return JobId(f"j{now_ms:012x}{random_bytes.hex()}")
