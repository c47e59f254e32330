"""A pack's manifest, made from a folder of markdown."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import UsageError
from kb.model.source import display_name

if TYPE_CHECKING:
    from kb.knowledge.packs.build import Built

STDOUT: Final = "-"
"""As `out`: the manifest is not written, and the result has its bytes."""
_MARKDOWN: Final = ("md", "markdown")


class BuildPackRequest(Struct, frozen=True, kw_only=True):
    """The folder, and where its manifest goes."""

    folder: str
    pack_id: str | None = None
    """Without one that of the folder's name."""
    out: str | None = None
    """A file in the folder or above it, or STDOUT; without one `manifest.json` in the folder."""
    force: bool = False
    """Whether a manifest that was made by hand is overwritten."""


class BuildPackResult(Struct, frozen=True, kw_only=True):
    """A manifest that was made of a folder."""

    pack_id: str
    manifest: str
    written: bool
    """False where it was there already, byte for byte."""
    docs: int
    edges: int
    content_hash: str
    warnings: tuple[str, ...]


class BuiltPack(Struct, frozen=True, kw_only=True):
    """A manifest, its bytes, and whether every file is in it."""

    result: BuildPackResult
    data: bytes
    is_whole: bool


def run(request: BuildPackRequest) -> BuiltPack:
    """Make a manifest of a folder, with the front matter and the links of its files.

    Names in it are relative to the manifest. A file that cannot be read is left out, and said.
    Raises UsageError where the manifest cannot lie at `out` or one made by hand is there, and
    ReadOnlyHome.
    """
    from kb.knowledge.packs.build import build, write_manifest
    from kb.store.content.layout import slug

    top = Path(os.path.realpath(request.folder))
    path = _place(top, request.out)
    files, unread = _files(top)
    built = build(path.parent, files, request.pack_id or slug(top.name))
    is_printed = request.out == STDOUT
    is_written = not is_printed and write_manifest(path, built.data, force=request.force)
    return BuiltPack(
        result=_result(built, path, is_written=is_written, unread=unread),
        data=built.data,
        is_whole=not built.failed and not unread,
    )


def _files(top: Path) -> tuple[list[Path], list[str]]:
    """The markdown below a folder, and a line for each file that could not be read."""
    from kb.intake.sync.walk import SkippedFile, WalkedFile, walk

    seen = list(walk(top, _MARKDOWN))
    unread = [
        f"{display_name(passed.path)}: {passed.reason}"
        for passed in seen
        if isinstance(passed, SkippedFile) and passed.failed
    ]
    return [file.path for file in seen if isinstance(file, WalkedFile)], unread


def _result(built: "Built", path: Path, *, is_written: bool, unread: list[str]) -> BuildPackResult:
    docs = built.manifest.docs
    return BuildPackResult(
        pack_id=built.manifest.pack_id,
        manifest=display_name(path),
        written=is_written,
        docs=len(docs),
        edges=sum(len(doc.related) for doc in docs),
        content_hash=built.manifest.content_hash,
        warnings=(*unread, *built.warnings),
    )


def _place(top: Path, out: str | None) -> Path:
    from kb.knowledge.packs.load import MANIFEST_JSON

    if out in (None, STDOUT):
        return top / MANIFEST_JSON
    path = Path(os.path.realpath(os.path.dirname(out) or "."), os.path.basename(out))
    if path.suffix != ".json":
        raise UsageError(f"{out}: a built manifest is JSON, and its name ends in .json")
    if not top.is_relative_to(path.parent):
        raise UsageError(f"{out} is neither in {display_name(top)} nor above it")
    return path
