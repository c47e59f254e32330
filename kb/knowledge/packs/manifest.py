"""The records of a manifest: a pack, its docs and their links."""

import re
from typing import Final, Literal, get_args

from msgspec import Struct

EdgeType = Literal[
    "part_of",
    "defines",
    "governs",
    "classifies",
    "references",
    "depends_on",
    "extends",
    "related_to",
]
EDGE_TYPES: Final[tuple[EdgeType, ...]] = get_args(EdgeType)

FindingCode = Literal[
    "cycle",
    "dangling_target",
    "duplicate_id",
    "duplicate_selector",
    "duplicate_source_path",
    "empty_title",
    "missing_body",
    "unknown_edge_type",
    "unknown_schema",
    "unreadable_body",
    "unsafe_path",
]

VERSION_DEFAULT: Final = "1"
SCHEMA_VERSION: Final = 1
KIND_DEFAULT: Final = "reference"

_NOT_OF_A_SLUG: Final = re.compile("[^A-Za-z0-9]+")
_DOCS_FOLDER: Final = "docs/"


class PackEdge(Struct, frozen=True, kw_only=True):
    """A link from a doc to another one of its pack."""

    type: EdgeType
    target: str
    """The other doc's id, selector or source path."""
    description: str | None = None


class PackDoc(Struct, frozen=True, kw_only=True):
    """A doc as its pack's manifest describes it."""

    id: str
    selector: str
    """The name by which a doc is asked for."""
    source_path: str
    """Where its body lies, relative to the manifest's folder, with slashes."""
    title: str
    summary: str
    kind: str
    """A slug, see `normal_kind`."""
    tags: tuple[str, ...]
    related: tuple[PackEdge, ...]
    """In the order of the manifest."""
    updated_at: str = ""
    """As the manifest writes it."""


class PackManifest(Struct, frozen=True, kw_only=True):
    """A pack and its docs, in the order of the manifest."""

    pack_id: str
    version: str = VERSION_DEFAULT
    schema_version: int = SCHEMA_VERSION
    root_uri: str = ""
    content_hash: str = ""
    """As the manifest writes it: whoever made it knows what it is over."""
    title: str = ""
    """What the pack is called, where its manifest says so."""
    docs: tuple[PackDoc, ...] = ()


class PackFinding(Struct, frozen=True, kw_only=True):
    """Something about a pack that its author would want to mend."""

    code: FindingCode
    doc: str
    """The doc's selector; empty where it is about the pack as a whole."""
    detail: str

    @property
    def line(self) -> str:
        """The finding in one line, for a person."""
        return f"{self.doc}: {self.detail}" if self.doc else self.detail


def normal_kind(written: str) -> str:
    """A kind as a slug: ASCII letters and digits in lower case, `_` for each run of others.

    Nothing left of it is `reference`.
    """
    return _NOT_OF_A_SLUG.sub("_", written).strip("_").lower() or KIND_DEFAULT


def derived_selector(source_path: str, pack_id: str, ident: str) -> str:
    """The selector of a doc whose manifest names none.

    Its source path without a leading `docs/` and a trailing `.md`, with dots for slashes; where
    that leaves nothing, its id without the pack's.
    """
    path = source_path.removeprefix(_DOCS_FOLDER).removesuffix(".md")
    return path.replace("/", ".") or ident.removeprefix(f"{pack_id}.")


def derived_id(pack_id: str, selector: str) -> str:
    """The id of a doc whose manifest names none."""
    return f"{pack_id}.{selector}"
