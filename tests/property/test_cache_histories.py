"""What is found depends on what the store holds, and not on what its caches have been through."""

import os
from pathlib import Path
from typing import Final

import cache_histories
import pytest
from cache_histories import Tally

from kb.search.index import codes

# The long campaign; `make test-caches`.
HISTORIES: Final = int(os.environ.get("KB_HISTORIES", "500"))
FEW: Final = 3
WITH_THE_MODEL: Final = 5
OVERLAP_MIN: Final = 0.98
# Of some thirty answers, in which one hit of one answer is 0.003.
OVERLAP_OF_FEW_MIN: Final = 0.97


@pytest.fixture(autouse=True)
def short_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of a small home have their rows in eight bits, too."""
    monkeypatch.setattr(codes, "ROWS_MIN", 64)
    monkeypatch.setattr(codes, "_BLOCK_ROWS", 32)


def test_histories_leave_no_trace(tmp_path: Path) -> None:
    """Without dead rows answers are those of caches made anew; with some they are nearly so."""
    tally = Tally()
    for seed in range(FEW):
        cache_histories.run(tmp_path / "home", seed, tally)
    assert (tally.histories, tally.level > 0, tally.between > 0) == (FEW, True, True)
    assert tally.overlap_mean >= OVERLAP_OF_FEW_MIN


@pytest.mark.slow
@pytest.mark.timeout(7_200)
def test_many_histories_leave_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As above, of many seeds, some with the built-in model."""
    tally = Tally()
    for seed in range(HISTORIES):
        kind = "onnx" if seed < WITH_THE_MODEL else "hashing"
        cache_histories.run(tmp_path / "home", 1_000 + seed, tally, kind)
    with capsys.disabled():
        print(f"\n{tally.line()}")
    assert (tally.histories, tally.level > 0, tally.between > 0) == (HISTORIES, True, True)
    assert tally.overlap_mean >= OVERLAP_MIN
