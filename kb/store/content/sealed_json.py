"""Sealed JSON files: a record after a line with its hash, so that damage shows."""

import hashlib
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from kb.model.decoding import decode_json

T = TypeVar("T")


def sealed_json(record: Struct) -> bytes:
    """The record as JSON, after a line with the hash of its bytes."""
    body = msgspec.json.encode(record)
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body + b"\n"


def read_sealed_json(path: Path, record_type: type[T]) -> tuple[str, T] | None:
    """The sealed record and its hash; None where it is missing, damaged or has another schema."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, _, body = content.partition(b"\n")
    if hashlib.sha256(body[:-1]).hexdigest().encode() != digest:
        return None
    try:
        return digest.decode(), decode_json(body, record_type)
    except msgspec.DecodeError:
        return None
