"""Packs written to a folder, and opened."""

import json
from pathlib import Path
from typing import Any

from kb.knowledge.packs.load import Pack, load_pack


def doc(name: str, **said: Any) -> dict[str, Any]:
    """What a folder's manifest says of a doc; `related` as pairs of type and target."""
    related = [{"type": kind, "target": target} for kind, target in said.pop("related", ())]
    return {
        "id": f"p.{name}",
        "selector": name,
        "source_path": f"docs/{name}.md",
        "title": name.title(),
        "summary": "",
        "kind": "reference",
        "tags": [],
        "related": related,
        **said,
    }


def pack_of(folder: Path, *docs: dict[str, Any], bodies: bool = True, **said: Any) -> Pack:
    """A pack of these docs, with a body for each."""
    for row in docs if bodies else ():
        path = folder / row["source_path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {row['title']}\n")
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {"pack_id": "p", **said, "docs": docs}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return load_pack(folder)
