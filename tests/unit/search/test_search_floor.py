"""The script that measures floors, and what is in force."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kb.search.fit import COMBINED_FLOORS, COVERAGE_FLOORS

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module; it finds its sibling as when it is run."""
    path = ROOT / "scripts/calibrate_floor.py"
    spec = importlib.util.spec_from_file_location("calibrate_floor", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules["calibrate_floor"] = module
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def test_without_the_sets_it_says_so(
    script: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each set that is not there is named, and nothing is measured."""
    monkeypatch.setattr(sys, "argv", ["calibrate_floor.py", str(tmp_path)])
    script.main()
    said = capsys.readouterr()
    assert "none of the test sets" in said.out
    assert f"skipped: {tmp_path / 'cranfield'} is not there" in said.err


def test_the_floor_is_the_lowest_that_marks_enough(script: ModuleType) -> None:
    """Each pair counts alike, however many questions it has; own questions have no part."""

    def pair(questions: str, *strengths: float) -> object:
        return script.Pair(
            corpus="a",
            questions=questions,
            families=("a", questions),
            strengths=strengths,
            by_words=False,
        )

    pairs = [pair("a", 0.1), pair("b", 0.2, 0.2, 0.2, 0.2), pair("c", 0.3, 0.4)]
    assert script.floor_of(pairs, 0.75) == 0.31
    assert script.floor_of(pairs, 1.0) == 0.41


def test_what_is_in_force_is_written_down() -> None:
    """The floors are those of the document with the measurements."""
    said = (ROOT / "docs/nothing-fits.md").read_text("utf-8")
    for floors in (COMBINED_FLOORS, COVERAGE_FLOORS):
        for floor in set(floors.values()):
            assert f"The floor is {floor:.2f}, with either fusion" in said
