"""What the page says of the machines that share a home."""

from pathlib import Path
from typing import TYPE_CHECKING

from homes import SmallHome
from http_server import serving
from nodes import Node
from page_browser import looking
from postgres_server import PostgresServer

from kb.model.node import WorkerRow
from kb.store.content.database import database_address
from kb.store.records import WORKERS
from kb.store.store import Store

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


def test_who_works_and_when_it_ends(
    driver: "Chrome", postgres: PostgresServer, tmp_path: Path
) -> None:
    """Each machine with its workers and their rate, then what waits, equal texts counted once."""
    address = postgres.home()
    home = SmallHome(tmp_path / "small", database_address(address))
    for name in ("tea", "coffee", "milk"):
        home.put(f"{name}.md", f"# {name.title()}\n\nA note on {name}.\n")
    home.put("again/milk.md", "# Milk\n\nA note on milk.\n")
    home.work("chunk")
    home.close()
    with Store.open_database(database_address(address)) as store, store.write() as txn:
        now_ms = store.clock.now_ms()
        for number in range(2):
            row = WorkerRow(
                node="<b>gpu",
                holder=f"gpu/{number}/1",
                model="m",
                since_ms=now_ms - 40_000,
                seen_ms=now_ms,
                texts=2,
            )
            WORKERS.put(txn, row.holder.encode(), row)
    node = Node(tmp_path / "ada", address, KB_MACHINE="ada")
    with (
        serving(node, "--workers", "0", env=dict(node.env)) as server,
        looking(driver, server.port) as page,
    ):
        page.open("#/stats")
        line, caches = page.says("main .rows li", lambda texts: len(texts) == 2)
        assert caches.startswith("adalevel, as of ")
        assert line == "<b>gpu2 workers: 4 texts, 0.1 a second"
        assert "3 texts to be embedded, about 30 seconds left" in page.texts("main p")
