"""Builds a manifest from a folder of markdown: front matter, titles, summaries and links."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from kb.errors import EmptySource, SourceError, TooLarge, Unreadable, UsageError
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.frontmatter import front_tree
from kb.intake.canonicalize.markdown import read
from kb.intake.canonicalize.title import one_line, plain_heading
from kb.intake.chunker.blocks import parse_blocks
from kb.intake.chunker.links import FileNames, Link, is_markdown, links
from kb.knowledge.packs.load import BODY_BYTES_MAX, DOCS_MAX, MANIFEST_BYTES_MAX, PACK_ID_CHARS_MAX
from kb.knowledge.packs.manifest import (
    EDGE_TYPES,
    PackDoc,
    PackEdge,
    PackManifest,
    derived_id,
    derived_selector,
    normal_kind,
)
from kb.model.decoding import decode_json
from kb.model.ids import sha256_hex
from kb.model.source import display_name
from kb.store.content.inside import read_inside

_SUMMARY_CHARS_MAX: Final = 300
_ROW_CHARS_MAX: Final = 80
# Shorter than the limit of a manifest, because ids are made of paths.
_PATH_CHARS_MAX: Final = 700
_KIND_CHARS_MAX: Final = 100
_BUILT_BY: Final = "kb pack build"


class BuiltManifest(PackManifest, frozen=True, kw_only=True):
    """A manifest with the mark that kb built it, so that kb may overwrite it."""

    built_by: str = _BUILT_BY


class Built(Struct, frozen=True, kw_only=True):
    """A manifest, and warnings about what it leaves out."""

    manifest: BuiltManifest
    warnings: tuple[str, ...]
    failed: int
    """How many files could not be read."""

    @property
    def data(self) -> bytes:
        """The manifest's file: the same files give the same bytes."""
        return msgspec.json.format(msgspec.json.encode(self.manifest), indent=2) + b"\n"


class _ManifestOrigin(Struct, frozen=True, kw_only=True):
    """The field of any manifest that says who built it."""

    built_by: str = ""


class _Note(Struct, frozen=True, kw_only=True):
    """A file as it was read."""

    path: str
    title: str
    summary: str
    kind: str
    tags: tuple[str, ...]
    date: str
    links: list[Link]
    related: Any
    """As written in the front matter."""
    sha256: str


class _LinkTargets(Struct, frozen=True, kw_only=True):
    """The files that links can resolve to."""

    names: FileNames
    selectors: dict[str, str]
    """By path."""
    all_selectors: frozenset[str]
    """All selectors."""
    warnings: list[str]


def build(folder: Path, files: Iterable[Path], pack_id: str) -> Built:
    """The manifest of the markdown `files`, which are below `folder`, its future place.

    Title, summary, kind, tags and links come from a file's front matter; otherwise the title is the
    first heading or the file's name, the summary the first paragraph. Links between the files
    become `references`. A file that cannot be read is left out, with a warning. Raises UsageError
    if the id is too long, TooLarge over 20,000 files, EmptySource if no file is left.
    """
    if len(pack_id) > PACK_ID_CHARS_MAX:
        raise UsageError(f"the pack's id is over {PACK_ID_CHARS_MAX} characters")
    warnings: list[str] = []
    paths = sorted(path.relative_to(folder).as_posix() for path in files)
    if len(paths) > DOCS_MAX:
        raise TooLarge(f"over {DOCS_MAX:,} files", source=display_name(folder))
    notes: list[_Note] = []
    failed = 0
    for path in paths:
        try:
            notes.append(_note(folder, path, warnings))
        except SourceError as error:
            warnings.append(str(error))
            failed += not isinstance(error, EmptySource)
    if not notes:
        raise EmptySource("there is no markdown in it", source=display_name(folder))
    selectors = _selectors([note.path for note in notes], pack_id)
    targets = _LinkTargets(
        names=FileNames({note.path: note.title for note in notes}),
        selectors=selectors,
        all_selectors=frozenset(selectors.values()),
        warnings=warnings,
    )
    manifest = BuiltManifest(
        pack_id=pack_id,
        content_hash=_content_hash(notes),
        docs=tuple(_doc(note, pack_id, targets) for note in notes),
    )
    return Built(manifest=manifest, warnings=tuple(warnings), failed=failed)


def _note(folder: Path, path: str, warnings: list[str]) -> _Note:
    if (shown := display_name(Path(path))) != path:
        raise Unreadable("its name is not UTF-8", source=shown)
    if len(path) > _PATH_CHARS_MAX:
        raise Unreadable("its path is too long for a manifest", source=path)
    data = read_inside(folder, path, BODY_BYTES_MAX)
    canonical = read(data, path)
    warnings.extend(f"{path}: {warning}" for warning in canonical.warnings)
    front = front_tree(clean_text(decode_text(data)[0]))
    summary = one_line(_text(front, "summary"), chars_max=_SUMMARY_CHARS_MAX)
    return _Note(
        path=path,
        title=canonical.title,
        summary=summary or first_paragraph(canonical.markdown),
        kind=normal_kind(_text(front, "kind")[:_KIND_CHARS_MAX]),
        tags=canonical.tags,
        date=canonical.date or "",
        links=links(canonical.markdown),
        related=front.get("related"),
        sha256=sha256_hex(data),
    )


def _text(front: dict[str, Any], key: str) -> str:
    value = front.get(key)
    return value if isinstance(value, str) else ""


def first_paragraph(markdown: str) -> str:
    """The first paragraph with text, as one line of at most 300 characters."""
    for block in parse_blocks(markdown):
        if block.kind == "para":
            text = " ".join(markdown[block.start : block.end].split())
            if summary := plain_heading(text, chars_max=_SUMMARY_CHARS_MAX):
                return summary
    return ""


def _selectors(paths: list[str], pack_id: str) -> dict[str, str]:
    """A unique selector for each path; files outside docs/ take precedence over those in it."""
    selectors: dict[str, str] = {}
    taken: set[str] = set()
    derived = {path: derived_selector(path, pack_id, "") for path in paths}
    wholes = {path: path.removesuffix(".md").replace("/", ".") for path in paths}
    for path in sorted(paths, key=lambda path: derived[path] != wholes[path]):
        selector, whole = derived[path], wholes[path]
        number = 1
        while selector in taken:
            selector = whole if number == 1 else f"{whole}-{number}"
            number += 1
        taken.add(selector)
        selectors[path] = selector
    return selectors


def _doc(note: _Note, pack_id: str, targets: _LinkTargets) -> PackDoc:
    selector = targets.selectors[note.path]
    edges: dict[tuple[str, str], PackEdge] = {}
    for edge in (*_authored(note, targets), *_linked(note, targets)):
        if edge.target != selector:
            edges.setdefault((edge.type, edge.target), edge)
    return PackDoc(
        id=derived_id(pack_id, selector),
        selector=selector,
        source_path=note.path,
        title=note.title,
        summary=note.summary,
        kind=note.kind,
        tags=note.tags,
        related=tuple(edges.values()),
        updated_at=note.date,
    )


def _authored(note: _Note, targets: _LinkTargets) -> Iterator[PackEdge]:
    """The links that the front matter names: texts, or mappings with `type` and `target`."""
    related = note.related
    for row in related if isinstance(related, list) else filter(None, [related]):
        link = row if isinstance(row, dict) else {"target": row}
        edge_type, target = (
            link.get("type", link.get("edge_type", "related_to")),
            link.get("target"),
        )
        if (
            edge_type not in EDGE_TYPES
            or not isinstance(target, str)
            or len(target) > _PATH_CHARS_MAX
        ):
            shown = one_line(str(row), chars_max=_ROW_CHARS_MAX)
            targets.warnings.append(
                f"{note.path}: left out a link whose type or target is not valid: {shown}"
            )
            continue
        path = None
        if target not in targets.all_selectors:
            path = targets.names.resolve(note.path, Link("wiki", target))
        selector = target if path is None else targets.selectors[path]
        if selector not in targets.all_selectors:
            targets.warnings.append(_broken_link(note, target))
        description = link.get("description")
        yield PackEdge(
            type=edge_type,
            target=selector,
            description=one_line(description) if isinstance(description, str) else None,
        )


def _linked(note: _Note, targets: _LinkTargets) -> Iterator[PackEdge]:
    for link in note.links:
        path = targets.names.resolve(note.path, link)
        if path is not None:
            yield PackEdge(type="references", target=targets.selectors[path])
        elif link.kind == "wiki" or is_markdown(link.target):
            targets.warnings.append(_broken_link(note, link.target))


def _broken_link(note: _Note, target: str) -> str:
    return f"{note.path}: it links to {target}, which does not exist"


def _content_hash(notes: list[_Note]) -> str:
    return "sha256:" + sha256_hex("".join(f"{note.sha256} {note.path}\n" for note in notes))


def write_manifest(path: Path, data: bytes, *, force: bool) -> bool:
    """Write a built manifest, whole or not at all; False if it is there unchanged.

    Raises UsageError if a manifest is there that kb did not build and `force` is not given, or if
    the place cannot be written.
    """
    current: bytes | None
    try:
        current = read_inside(path.parent, path.name, MANIFEST_BYTES_MAX)
    except SourceError:
        current = None if not os.path.lexists(path) else b""
    if current == data:
        return False
    if current is not None and not force and not _is_built(current):
        raise UsageError(f"{display_name(path)} was made by hand; --force overwrites it")
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with open(beside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UsageError(f"{display_name(path)}: {error.strerror}") from error
    return True


def _is_built(data: bytes) -> bool:
    try:
        return decode_json(data, _ManifestOrigin).built_by == _BUILT_BY
    except (ValueError, RecursionError):
        return False
