"""A small home with two docs, and its backups."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from homes import SmallHome

from kb.model.embedder import EmbedderChoice, EmbedderSet, EmbedderSpec
from kb.store import embedders
from kb.upkeep.backup import Backups


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    home = SmallHome(tmp_path / "home")
    choice = EmbedderChoice(kind="hashing")
    spec = EmbedderSpec(choice=choice, fingerprint=home.embedder.fingerprint, dim=home.embedder.dim)
    with home.store.write() as txn:
        embedders.put(txn, EmbedderSet(active=spec, settings=choice))
    home.add("tea.md", "# Tea\n\nGreen tea is steeped, see #tea.")
    home.add("milk.md", "# Milk\n\nMilk is poured.")
    yield home
    home.close()


@pytest.fixture
def backups(home: SmallHome) -> Backups:
    tokens = iter(f"{number:06x}" for number in range(100))
    return Backups(home.paths, home.store, lambda: next(tokens))
