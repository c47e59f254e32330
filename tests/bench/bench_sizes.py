"""What a passage takes: bytes in each store, bytes of a machine's caches, memory of a server.

Each is the growth between a small home and a larger one, divided by the passages between them. The
passages are of about a hundred words, with vectors of the built-in model's size. Run with
`make bench-sizes`.
"""

import argparse
import asyncio
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from bench_serve import SEED, asked, database_home, made_home, searches, server
from run import said

from kb.home.app import App
from kb.model.config import load
from kb.store.content.database import local_folder


def sizes(folder: Path, address: Path | str) -> dict[str, float]:
    """Of one home: its passages, and bytes of its store, its files and its caches."""
    with App.open(folder, load([], [])) as app:
        with app.store.read() as txn:
            passages = txn.count("chunks")
        store = app.store.size_bytes()
    with server(address, "--workers", "0") as (port, pid):
        asyncio.run(asked(port, 4, lambda _: searches(0.0, SEED), count=200))
        status = Path(f"/proc/{pid}/status").read_text()
        memory = {name: int(kb) * 1024 for name, kb in re.findall(r"(Rss\w+):\s+(\d+) kB", status)}
    return {
        "passages": passages,
        "store": store,
        "files": _bytes(folder / "raw") + _bytes(folder / "md"),
        "caches": _bytes(folder / "index"),
        "mapped": memory["RssFile"],
        "own": memory["RssAnon"],
    }


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def growth(name: str, small: dict[str, float], large: dict[str, float]) -> dict[str, Any]:
    """Bytes a passage, and what a server takes without any."""
    count = large["passages"] - small["passages"]
    row: dict[str, Any] = {"name": f"{name}, {large['passages']:.0f} passages"}
    for part in ("store", "files", "caches", "mapped", "own"):
        row[f"{part}_bytes_each"] = (large[part] - small[part]) / count
    return said({**row, "own_mb": large["own"] / 2**20, "mapped_mb": large["mapped"] / 2**20})


def main() -> None:
    """Measure both stores, print it, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=40_000)
    parser.add_argument("--out", type=Path, default=Path("bench-out/sizes.json"))
    options = parser.parse_args()
    counts = (options.passages // 8, options.passages)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        measured = []
        for count in counts:
            home = scratch / f"home-{count}"
            made_home(home, scratch / f"books-{count}", count)
            measured.append(sizes(home, home))
        rows.append(growth("folder", *measured))
        measured = []
        for count in counts:
            with database_home(scratch / f"database-{count}", scratch / f"home-{count}") as address:
                measured.append(sizes(local_folder(address), address))
        rows.append(growth("PostgreSQL", *measured))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
