"""Ids: most are derived from content, so that a second run gives the same ids."""

import hashlib
from typing import Final, NewType

DocId = NewType("DocId", str)
ChunkId = NewType("ChunkId", str)
JobId = NewType("JobId", str)
Lsid = NewType("Lsid", str)
# The number of a chunk or source, by which the caches are keyed. Never reused in a home.
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
    # Each part is prefixed by its length, so that ("ab", "c") and ("a", "bc") differ.
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return sha256_hex(joined)[:digits]


def doc_id(lsid: Lsid, version: int) -> DocId:
    """The id of one version of a logical source."""
    return DocId("d" + _hash_parts((lsid, str(version)), _DOC_HEX))


def generation_lsid(place: Lsid, generation: int) -> Lsid:
    """The lsid of the source of this generation, from 1, that began at a place.

    Sources may begin at one place one after another; place and generation together name one of
    them. The owner of an uploaded source is part of its place. No place starts with `birth:`.
    """
    return place if generation == 1 else Lsid(f"{_GENERATION_PREFIX}{generation}:{place}")


def split_generation(lsid: Lsid) -> tuple[Lsid, int]:
    """The original place and the generation that an lsid consists of."""
    if not lsid.startswith(_GENERATION_PREFIX):
        return lsid, 1
    number, _, place = lsid.removeprefix(_GENERATION_PREFIX).partition(":")
    return Lsid(place), int(number)


def chunk_id(lsid: Lsid, text: str, occurrence: int) -> ChunkId:
    """The id of a chunk, from its source, its text, and its index among equal texts (from 0).

    It does not depend on doc_id or version, so an unchanged chunk keeps its id across edits.
    """
    return ChunkId("c" + _hash_parts((lsid, text, str(occurrence)), _CHUNK_HEX))


def job_id(now_ms: int, random_bytes: bytes) -> JobId:
    """The id of a new job: the time and a few random bytes. Later ids sort after earlier ones.

    It is not a sequence number, which would reveal how many jobs others have.
    """
    return JobId(f"j{now_ms:012x}{random_bytes.hex()}")
