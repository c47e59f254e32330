"""Claims about what names the way in which passages are cut."""

import msgspec
import pytest

from kb.intake.worker.settings import WorkerSettings


@pytest.mark.parametrize(
    "name", ["tokens_max", "overlap_tokens", "entry_tokens_max", "entry_overlap_tokens"]
)
def test_every_length_is_in_the_fingerprint(name: str) -> None:
    """Another length, of notes or of entries, cuts docs again."""
    settings = WorkerSettings()
    other = msgspec.structs.replace(settings, **{name: 16})
    assert other.chunker != settings.chunker
    assert msgspec.structs.replace(settings, threads=9).chunker == settings.chunker
