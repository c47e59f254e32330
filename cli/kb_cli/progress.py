"""A bar with rate and time to go, on standard error, where that is a terminal."""

from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.text import Text


class _Rate(ProgressColumn):
    """Items a second."""

    def render(self, task: Task) -> Text:
        """The rate as known so far."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.0f}/s" if speed else "")


class Progress:
    """Two bars in turn: sources read, then jobs worked off."""

    def __init__(self) -> None:
        self._rich = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._reading = self._rich.add_task("reading", total=None)
        self._working = self._rich.add_task("indexing", total=None, visible=False)
        self._jobs_max = 0

    def reading(self, done: int, total: int) -> None:
        """So many sources of so many are read."""
        self._rich.update(self._reading, completed=done, total=total)

    def working(self, left: int) -> None:
        """So many jobs are left."""
        self._jobs_max = max(self._jobs_max, left)
        self._rich.update(
            self._working, completed=self._jobs_max - left, total=self._jobs_max, visible=True
        )

    def __enter__(self) -> Self:
        self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._rich.stop()
