"""Reads right after acknowledged writes, over two servers on two machines' caches.

The second one reads a replica of the database that is late. With the token of its write no read may
be answered from a state before it; without the token many are. Run with `make bench-stale`.
"""

import argparse
import concurrent.futures
import tempfile
from collections import Counter
from pathlib import Path

from http_server import Running, serving
from nodes import Node
from postgres_server import running_server
from run import said
from stale_reads import StaleReads

CLIENTS = 8
READS_A_ROUND = 6


def rounds(writer: Running, reader: Running, reads: int, *, with_token: bool) -> int:
    """Read so often from many clients; returns how many reads were stale."""

    def one(client: int) -> StaleReads:
        mine = StaleReads(writer, reader, with_token=with_token, name=f"w{with_token:d}c{client}n")
        for number in range(reads // READS_A_ROUND // CLIENTS + 1):
            mine.round(number)
        return mine

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        done = list(clients.map(one, range(CLIENTS)))
    stale = sum((each.stale for each in done), Counter[str]())
    refused = sum((each.refused for each in done), Counter[int]())
    name = "with the token" if with_token else "without it"
    row = {"name": f"reads {name}", "reads": sum(each.reads for each in done)}
    said(
        {
            **row,
            "stale": stale.total(),
            **{f"of {what}": n for what, n in stale.items() if n},
            **{f"refused by {status}": n for status, n in refused.items()},
        }
    )
    return stale.total()


def main() -> None:
    """Count, and exit with 1 where a read with a token was stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reads", type=int, default=10_000)
    parser.add_argument("--lag-ms", type=int, default=50, help="how late the replica is")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, running_server() as primary:
        folder = Path(temporary)
        one = Node(folder / "one", primary.home("team"))
        (folder / "note.md").write_text("# Note\n\nThe first.")
        assert one.run("add", folder / "note.md").code == 0
        with serving(one, env=dict(one.env)) as writer:
            # The key of the tokens is made, before the replica copies what there is.
            assert "kb-transaction" in writer.get("/v1/docs").headers
            with primary.replica(options.lag_ms) as late:
                two = Node(folder / "two", late.home("team"))
                with serving(two, "--workers", "0", env=dict(two.env)) as reader:
                    stale = rounds(writer, reader, options.reads, with_token=True)
                    rounds(writer, reader, min(options.reads, 600), with_token=False)
    raise SystemExit(stale > 0)


if __name__ == "__main__":
    main()
