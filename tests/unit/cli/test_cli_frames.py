"""The way from a command to the engine is short."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from commands import Home
from kb_cli.main import kb

from kb.search.engine import Searcher

FRAMES_MAX = 4


def test_a_search_passes_few_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of kb's own frames at most four lie between `kb search` and the engine."""
    home = Home(tmp_path / "home")
    (tmp_path / "boat.md").write_text("# Boat\n\nThe keel is made of oak.\n")
    assert home.run("add", tmp_path / "boat.md").code == 0
    stacks: list[list[tuple[str, str]]] = []
    search = Searcher._searched

    def watched(self: Searcher, *args: Any) -> Any:
        frames = inspect.stack()[1:]
        stacks.append([(frame.filename, frame.function) for frame in frames])
        return search(self, *args)

    monkeypatch.setattr(Searcher, "_searched", watched)
    args = [str(word) for word in home.argv("search", "oak", "--json")[1:]]
    assert CliRunner().invoke(kb, args, obj={}).exit_code == 0
    (stack,) = stacks
    names = [(Path(name), function) for name, function in stack]
    command = next(
        place for place, (name, _) in enumerate(names) if name.parts[-2:] == ("kb_cli", "search.py")
    )
    engine = max(place for place, (name, _) in enumerate(names) if name.parent.name == "search")
    between = names[engine + 1 : command]
    assert 0 < len(between) <= FRAMES_MAX, between
