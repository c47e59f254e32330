"""Every record type that a server decodes is known to the decoder before there are threads."""

from typing import Any

import msgspec
import pytest

from kb.model.job import Job
from kb.search.index.dense_files import DenseManifest
from kb.search.index.lexical_files import LexicalManifest
from kb.serve.decoders import build_decoders
from kb.serve.http_state import JobsInput


def test_the_records_of_store_indexes_and_requests_are_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two threads that build one at once end the process, and nothing else prevents that."""
    built: list[Any] = []
    decoder = msgspec.json.Decoder
    monkeypatch.setattr(msgspec.json, "Decoder", lambda kind: (built.append(kind), decoder(kind)))
    assert build_decoders() > 100
    assert {Job, LexicalManifest, DenseManifest, JobsInput} <= set(built)
