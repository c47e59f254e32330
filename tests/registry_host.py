"""A registry that is published to a folder and served from it on loopback, as any host would."""

import hashlib
from pathlib import Path
from typing import Any

from crash_rig import CFG, Called, Rig
from loopback import HOST, LoopbackServer, Route, conditional

WEB = (*CFG, f'fetch.allow=["{HOST}"]')


class Files(dict[str, Route]):
    """Routes to the files of a folder; what is set by hand comes first."""

    def __init__(self, folder: Path, *, validators: bool = True) -> None:
        super().__init__()
        self.folder = folder
        self.validators = validators

    def get(self, path: str, default: Any = None) -> Any:
        file = self.folder / path.lstrip("/")
        if path in self or not file.is_file():
            return super().get(path, default)
        body = file.read_bytes()
        etag = f'"{hashlib.sha256(body).hexdigest()}"' if self.validators else ""
        return conditional(body, etag=etag)


def entry_text(ident: str, version: str = "1.0.0", body: str = "") -> str:
    """An entry with two sections, which say its id as a word."""
    front = f"---\nzettel_id: {ident}\ntitle: About {ident}\nversion: {version}\n---\n"
    return f"{front}# {ident}\n\n{body or f'about {ident}'}\n\n## Hull\n\nthe hull of {ident}\n"


def line_of(report: Any, ident: str) -> Any:
    """What a report says of one entry."""
    (line,) = [line for line in report["entries"] if line["zettel_id"] == ident]
    return line


class Publisher:
    """A folder of entries, published to another one."""

    def __init__(self, root: Path) -> None:
        self.rig = Rig(root / "publisher")
        self.source = root / "source"
        self.to = root / "published"
        self.source.mkdir(parents=True)

    def write(self, ident: str, version: str = "1.0.0", body: str = "") -> None:
        (self.source / f"{ident}.md").write_text(entry_text(ident, version, body))

    def call(self, *options: object) -> Called:
        return self.rig.call("registry", "publish", self.source, "--to", self.to, *options)

    def publish(self, *options: object) -> Any:
        said = self.call(*options, "--json")
        assert said.code == 0, said
        return said.json

    def files(self) -> dict[str, bytes]:
        """Everything that is published, by path."""
        found = (path for path in self.to.rglob("*") if path.is_file())
        return {path.relative_to(self.to).as_posix(): path.read_bytes() for path in found}

    def served_by(self, server: LoopbackServer, *, validators: bool = True) -> str:
        """Serve it; returns its address."""
        server.routes = Files(self.to, validators=validators)
        return server.url("/")


def published(root: Path) -> Publisher:
    """Three entries, each at version 1.0.0."""
    made = Publisher(root)
    for ident in ("boats", "sails", "wood"):
        made.write(ident)
    made.publish()
    return made


class Reader(Rig):
    """A home that pulls."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, cfg=WEB)

    @property
    def knowledge(self) -> Path:
        return self.home / "knowledge"

    def follow(self, name: str, place: object, *options: object) -> None:
        said = self.call("registry", "add", name, place, *options)
        assert said.code == 0, said

    def sync(self, code: int = 0) -> Any:
        return self.said("sync-knowledge", code=code)

    def said(self, *args: object, code: int = 0) -> Any:
        """The report of a pull, which adds up."""
        said = self.call(*args, "--json")
        assert said.code == code, said
        report = said.json
        names = ("new", "updated", "unchanged", "kept", "failed")
        assert report["seen"] == sum(report[name] for name in names)
        return report

    def counts(self, report: Any) -> dict[str, int]:
        names = ("new", "updated", "unchanged", "kept", "failed")
        return {name: report[name] for name in names if report[name]}

    def hits(self, word: str) -> list[str]:
        """Ids of the entries in which a word is found."""
        said = self.call("search", word, "--mode", "lexical", "--json")
        assert said.code == 0, said
        return sorted({hit["zettel_id"] for hit in said.json["hits"]})

    def edit(self, ident: str, text: str) -> Path:
        path = self.knowledge / f"{ident}.md"
        path.write_text(text)
        return path
