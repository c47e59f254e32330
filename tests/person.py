"""Somebody with two spaces, and the real command as they call it."""

import contextlib
from pathlib import Path
from typing import Any

from commands import HASHING, KB, Ran, run, surroundings
from http_server import Running, serving
from untrusted_homes import trust_home


class Person:
    """Somebody with a user space, and with a project in whose folder commands are run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "work" / "project"
        self.user_home = root / "data" / "kb"
        self.team = ""
        """The address of a home that may take the place of the user's."""
        self.ids: dict[str, str] = {}
        self.doc_ids: dict[str, str] = {}
        self.env = surroundings(
            HOME=str(root), XDG_DATA_HOME=str(root / "data"), XDG_CONFIG_HOME=str(root / "config")
        )

    def argv(self, *args: object) -> list[str]:
        """The whole command line, without `--home`."""
        return [KB, *HASHING, *map(str, args)]

    def trust(self) -> None:
        """Let the project count, which was copied, or made without a command."""
        trust_home(self.project_home, self.root / "data")

    @property
    def project_home(self) -> Path:
        return self.project / ".kb"

    def kb(self, *args: object, cwd: Path | None = None, **options: Any) -> Ran:
        """A command without `--home`, in the project's folder unless elsewhere is said."""
        argv = [*options.pop("prefix", []), *self.argv(*args)]
        return run(argv, cwd=cwd or self.project, env=self.env | options.pop("env", {}), **options)

    def serving(self, *options: str) -> contextlib.AbstractContextManager[Running]:
        """`kb serve` in the project's folder, with options of `kb` itself."""
        return serving(self, before=options, env=self.env, cwd=self.project)

    def home_of(self, space: str) -> Path:
        return self.user_home if space == "user" else self.project_home

    def ids_of(self, space: str) -> dict[str, str]:
        """Doc ids of a space by title."""
        rows = self.kb("--space", space, "ls", "--json", "--limit", "0").json["docs"]
        return {row["title"]: row["doc_id"] for row in rows}

    def hits(self, *args: object, **options: Any) -> list[tuple[str, str]]:
        """Title and space of each hit of a search for harbours."""
        ran = self.kb("search", "harbour", "--json", *args, **options)
        assert ran.code == 0, ran.err
        assert ran.err == ""
        self.doc_ids = {hit["title"]: hit["doc_id"] for hit in ran.json["hits"]}
        return [(hit["title"], hit["source_space"]) for hit in ran.json["hits"]]
