"""Loads a pack: its whole manifest at once, its bodies when they are read."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from kb.errors import NotFound, SourceError, Unparsable, UsageError
from kb.knowledge.packs.manifest import (
    EDGE_TYPES,
    KIND_DEFAULT,
    SCHEMA_VERSION,
    VERSION_DEFAULT,
    PackDoc,
    PackEdge,
    PackFinding,
    PackManifest,
    derived_id,
    derived_selector,
    normal_kind,
)
from kb.model.decoding import convert, decode_json
from kb.model.pack import PackForm
from kb.model.source import display_name, file_lsid
from kb.store.content.inside import read_inside

MANIFEST_BYTES_MAX: Final = 16 << 20
DOCS_MAX: Final = 20_000
BODY_BYTES_MAX: Final = 16 << 20
PACK_ID_CHARS_MAX: Final = 200
MANIFEST_JSON: Final = "manifest.json"

_MANIFEST_NAMES: Final = ("manifest.yaml", "manifest.yml", MANIFEST_JSON)
_FORMS: Final[dict[str, PackForm]] = {
    ".yaml": "package",
    ".yml": "package",
    ".json": "filesystem",
}


class UnknownPack(NotFound):
    """No pack is registered under this name, and none is at this path."""

    template = "there is no pack {id}; `kb pack ls` lists the packs"


class UnknownPackDoc(NotFound):
    """The pack has no doc with this id, selector or source path."""

    template = "the pack {pack} has no doc {id}; `kb pack list {pack}` lists its docs"


class PackBody(Struct, frozen=True, kw_only=True):
    """The text of a doc, and a warning if its encoding was guessed."""

    text: str
    warning: str | None = None


class PackRead(Struct, frozen=True, kw_only=True):
    """A doc and its body."""

    document: PackDoc
    content: str | None
    """None if the body cannot be read; a warning says why."""
    warnings: tuple[str, ...]


class Pack:
    """A pack at one place. Its manifest is in memory; bodies are read on request."""

    def __init__(
        self,
        path: Path,
        manifest: PackManifest,
        selector: str | None,
        findings: tuple[PackFinding, ...] = (),
    ) -> None:
        self.path = path
        self.manifest = manifest
        self.selector = selector
        self.findings = findings
        """Warnings on what was left out when it was loaded."""
        self._docs: dict[str, PackDoc] = {}
        for doc in manifest.docs:
            for name in (doc.id, doc.selector, doc.source_path):
                self._docs.setdefault(name, doc)

    @property
    def form(self) -> PackForm:
        """The form of its manifest."""
        return _FORMS[self.path.suffix.lower()]

    @property
    def location(self) -> str:
        """The manifest's absolute path, as shown and stored."""
        return display_name(self.path)

    def find(self, name: str) -> PackDoc | None:
        """The first doc with this id, selector or source path; None if there is none."""
        return self._docs.get(name)

    def require(self, name: str) -> PackDoc:
        """As `find`; raises UnknownPackDoc."""
        doc = self.find(name)
        if doc is None:
            raise UnknownPackDoc(id=name, pack=self.manifest.pack_id)
        return doc

    def body(self, doc: PackDoc) -> PackBody:
        """A doc's text; if its bytes are not UTF-8, they are decoded by a guess, with a warning.

        Reads only below the manifest's folder. Raises Refused if the source path leads elsewhere,
        Unreadable, or TooLarge.
        """
        from kb.intake.canonicalize.decode import decode_text

        text, warning = decode_text(read_inside(self.path.parent, doc.source_path, BODY_BYTES_MAX))
        return PackBody(text=text, warning=f"{doc.source_path}: {warning}" if warning else None)

    def read(self, name: str) -> PackRead:
        """A doc with its body, if that can be read. Raises UnknownPackDoc."""
        doc = self.require(name)
        try:
            body = self.body(doc)
        except SourceError as error:
            return PackRead(document=doc, content=None, warnings=(str(error),))
        warnings = (body.warning,) if body.warning else ()
        return PackRead(document=doc, content=body.text, warnings=warnings)


def load_pack(place: Path) -> Pack:
    """The pack of which `place` is the manifest or the folder.

    Raises UnknownPack if it is neither, UsageError if a folder has two manifests or a file's name
    tells no form, Unreadable, Refused, TooLarge, and Unparsable, which names the doc and the field.
    """
    path = _manifest_path(place)
    name = display_name(path)
    form = _FORMS.get(path.suffix.lower())
    if form is None:
        raise UsageError(
            f"{name} is not a manifest; a manifest's name ends in .json, .yaml or .yml"
        )
    try:
        data = read_inside(path.parent, path.name, MANIFEST_BYTES_MAX)
    except SourceError as error:
        raise type(error)(error.reason, source=name) from error
    return parsed(path, data)


def parsed(path: Path, data: bytes) -> Pack:
    """The pack of a manifest with these bytes; the name of `path` tells its form.

    Raises Unparsable, which names the doc and the field.
    """
    name, form = display_name(path), _FORMS[path.suffix.lower()]
    try:
        return _of_package(path, data) if form == "package" else _of_filesystem(path, data)
    except msgspec.ValidationError as error:
        detail, _, at = str(error).partition(" - at `$.")
        field = at.rstrip("`")
        raise Unparsable(f"{field}: {detail}" if field else detail, source=name) from error
    except (ValueError, RecursionError) as error:
        detail = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Unparsable(f"not the manifest of a pack: {detail}", source=name) from error


def _manifest_path(place: Path) -> Path:
    if not os.path.isdir(place):
        if not os.path.exists(place):
            raise UnknownPack(id=display_name(place))
        # A manifest has one path, however its folder was typed.
        return Path(os.path.realpath(place.parent), place.name)
    names = [name for name in _MANIFEST_NAMES if (place / name).exists()]
    if not names:
        all_names = ", ".join(_MANIFEST_NAMES)
        raise UnknownPack(id=f"in {display_name(place)}, which has none of {all_names}")
    if len(names) > 1:
        found_names = " and ".join(names)
        raise UsageError(f"{display_name(place)} has {found_names}; name one of them")
    return Path(os.path.realpath(place), names[0])


# The records of manifests as written. Unknown keys are ignored, because later versions may have
# more.

_Name = Annotated[str, Meta(min_length=1, max_length=PACK_ID_CHARS_MAX)]
_Word = Annotated[str, Meta(max_length=200)]
_Line = Annotated[str, Meta(max_length=1_000)]
_Text = Annotated[str, Meta(max_length=10_000)]
_Words = Annotated[tuple[_Word, ...], Meta(max_length=200)]


class _Edge(Struct, frozen=True, kw_only=True):
    """A link; its type has two names."""

    type: _Word | None = None
    edge_type: _Word | None = None
    target: _Line
    description: _Text | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if there is no type, or two."""
        if (self.type is None) == (self.edge_type is None):
            raise ValueError("give one of `type` and `edge_type`")


class _Doc(Struct, frozen=True, kw_only=True):
    """A doc of a package: missing fields are derived."""

    id: _Line | None = None
    selector: _Line | None = None
    source_path: _Line
    title: _Line
    summary: _Text
    kind: _Word = KIND_DEFAULT
    tags: _Words = ()
    related: tuple[_Edge, ...] = ()
    updated_at: _Word = ""


class _WholeDoc(_Doc, frozen=True, kw_only=True):
    """A doc of a folder's manifest: all fields except the time are required."""

    id: _Line
    selector: _Line
    kind: _Word
    tags: _Words
    related: tuple[_Edge, ...]


class _Package(Struct, frozen=True, kw_only=True):
    """The table `manifest` in a package's file."""

    pack_id: _Name | None = None
    pack_slug: _Name | None = None
    selector: _Line | None = None
    version: _Word = VERSION_DEFAULT
    schema_version: Annotated[int, Meta(ge=0)] = SCHEMA_VERSION
    root_uri: _Line = ""
    content_hash: _Line = ""
    title: _Line = ""
    docs: Annotated[tuple[_Doc, ...], Meta(max_length=DOCS_MAX)] = ()

    def __post_init__(self) -> None:
        """Raise ValueError if there is no id, or two."""
        if (self.pack_id is None) == (self.pack_slug is None):
            raise ValueError("give one of `pack_id` and `pack_slug`")

    @property
    def ident(self) -> str:
        """The pack's id, under either of its names."""
        return self.pack_id or self.pack_slug or ""


class _PackageFile(Struct, frozen=True, kw_only=True):
    """A package's whole file; fields in `manifest` take precedence."""

    selector: _Line | None = None
    root_uri: _Line = ""
    manifest: _Package


class _FolderFile(_Package, frozen=True, kw_only=True):
    """A folder's whole file."""

    docs: Annotated[tuple[_WholeDoc, ...], Meta(max_length=DOCS_MAX)] = ()


def _of_package(path: Path, data: bytes) -> Pack:
    from kb.intake.canonicalize.yaml_tree import yaml_tree

    # Scalars are texts as written, so a number is read from its text.
    file = convert(yaml_tree(data.decode("utf-8-sig")), _PackageFile, strict=False)
    package = file.manifest
    root_uri = package.root_uri or file.root_uri or f"pkg://{package.ident}/"
    return _pack(path, package, root_uri, package.selector or file.selector)


def _of_filesystem(path: Path, data: bytes) -> Pack:
    package = decode_json(data.removeprefix(b"\xef\xbb\xbf"), _FolderFile)
    root_uri = package.root_uri.strip() or f"{file_lsid(path.parent)}/"
    return _pack(path, package, root_uri, package.selector)


def _pack(path: Path, package: _Package, root_uri: str, selector: str | None) -> Pack:
    findings: list[PackFinding] = []
    if package.schema_version != SCHEMA_VERSION:
        detail = f"schema version {package.schema_version} is read as if it were {SCHEMA_VERSION}"
        findings.append(PackFinding(code="unknown_schema", doc="", detail=detail))
    manifest = PackManifest(
        pack_id=package.ident,
        version=package.version,
        schema_version=package.schema_version,
        root_uri=root_uri,
        content_hash=package.content_hash,
        title=package.title,
        docs=tuple(_doc(doc, package.ident, findings) for doc in package.docs),
    )
    return Pack(path, manifest, selector or None, tuple(findings))


def _doc(doc: _Doc, pack_id: str, findings: list[PackFinding]) -> PackDoc:
    selector = doc.selector
    if selector is None:
        selector = derived_selector(doc.source_path, pack_id, doc.id or "")
    return PackDoc(
        id=derived_id(pack_id, selector) if doc.id is None else doc.id,
        selector=selector,
        source_path=doc.source_path,
        title=doc.title,
        summary=doc.summary,
        kind=normal_kind(doc.kind),
        tags=doc.tags,
        related=tuple(_edges(doc.related, selector, findings)),
        updated_at=doc.updated_at,
    )


def _edges(
    related: Iterable[_Edge], selector: str, findings: list[PackFinding]
) -> Iterator[PackEdge]:
    for edge in related:
        edge_type: Any = edge.type or edge.edge_type
        if edge_type in EDGE_TYPES:
            yield PackEdge(type=edge_type, target=edge.target, description=edge.description)
        else:
            edge_types = ", ".join(EDGE_TYPES)
            detail = (
                f"the link to {edge.target} is left out, as {edge_type!r} is none of {edge_types}"
            )
            findings.append(PackFinding(code="unknown_edge_type", doc=selector, detail=detail))
