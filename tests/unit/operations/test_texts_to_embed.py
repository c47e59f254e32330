"""What `kb stats` says of the texts that are still to be embedded."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from homes import SmallHome

from kb.home import stats

SAME = "# Tea\n\nGreen tea is steeped.\n"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    home = SmallHome(tmp_path / "home")
    yield home
    home.close()


def lacking(home: SmallHome) -> int:
    with home.store.read() as txn:
        return stats.texts_to_embed(txn, home.embedder.fingerprint)


def test_equal_texts_are_embedded_once(home: SmallHome) -> None:
    """They count once, also where one of them has a vector already; in the end none is left."""
    for name in ("a/tea.md", "b/tea.md", "c/tea.md"):
        home.put(name, SAME, "Tea")
    home.put("milk.md", "# Milk\n\nMilk is poured.\n")
    home.work("chunk")
    assert (home.count("chunks"), lacking(home)) == (4, 2)
    home.work()
    assert (home.count("vectors"), lacking(home)) == (2, 0)
    home.put("d/tea.md", SAME, "Tea")
    home.put("coffee.md", "# Coffee\n\nBeans are roasted.\n")
    home.work("chunk")
    assert lacking(home) == 1


def test_what_is_beyond_a_bound_is_reckoned(
    home: SmallHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many docs that wait, some tell how many texts all have."""
    monkeypatch.setattr(stats, "_WAITING_DOCS_MAX", 4)
    monkeypatch.setattr(stats, "_DOCS_AT_ONCE", 3)
    for number in range(10):
        home.put(f"{number}.md", f"# Note {number}\n\nText {number}.\n")
    home.work("chunk")
    assert lacking(home) == 10
