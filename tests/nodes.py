"""Machines that share a home in a database: each has caches, settings and data of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commands import HASHING, KB, Ran, run, surroundings


class Node:
    """One machine, which runs commands on a home."""

    def __init__(self, folder: Path, home: str, **variables: str) -> None:
        """`variables` are of its environment."""
        self.folder = folder
        self.home = home
        self.env: Mapping[str, str] = surroundings(
            XDG_CACHE_HOME=str(folder / "cache"),
            XDG_DATA_HOME=str(folder / "data"),
            XDG_CONFIG_HOME=str(folder / "config"),
            **variables,
        )

    def argv(self, *args: object) -> list[str]:
        """The whole command line."""
        return [KB, "--home", self.home, *HASHING, *map(str, args)]

    def run(self, *args: object, **options: Any) -> Ran:
        """Run a command to its end."""
        return run(self.argv(*args), env=dict(self.env), **options)

    def hits(self, query: str) -> list[dict[str, Any]]:
        """What a search finds."""
        hits: list[dict[str, Any]] = self.run("search", query, "--json").json["hits"]
        return hits

    def id_of(self, name: str) -> str:
        """The id of the doc of a file."""
        rows = self.run("ls", "--json", "--limit", "0").json["docs"]
        (ident,) = [row["doc_id"] for row in rows if Path(row["source"]).name == name]
        return str(ident)

    @property
    def local(self) -> Path:
        """The local folder of its only home."""
        (folder,) = (self.folder / "cache" / "kb" / "homes").iterdir()
        return folder
