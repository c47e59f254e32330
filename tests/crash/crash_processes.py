"""Processes for crash tests: forked from a zygote that has everything imported, then killed.

Run as a script with the root of a rig. Each line on standard input starts a child (`role seed
log`) or waits for one (`reap pid`); the answer is a line with its number or its exit status. What
a child does and is told, it appends to its log: `try` before, `ack` after.
"""

import contextlib
import io
import os
import random
import signal
import string
import sys
from pathlib import Path
from typing import Any, Final

from crash_rig import CFG, Rig
from kb_cli.main import kb

from kb.home.app import App
from kb.intake.ingest.changes import tombstone
from kb.intake.sync.add import AddOptions
from kb.model.config import load
from kb.model.ids import DocId
from kb.store.trust import trust_list, trusting_new_store

FILES: Final = 6
_EDITED_SHARE: Final = 0.9


def text(word: str) -> str:
    # Two passages that every file has in part, so that jobs meet over the same text.
    common = "These words stand in every file of this folder. " * 8
    return f"# Title\n\nHere stands {word}.\n\n## Common\n\n{common}\n"


class Log:
    """Lines that outlive the process; each is one write."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def say(self, *words: str) -> None:
        os.write(self._fd, (" ".join(words) + "\n").encode())


def edit_and_add(rig: Rig, rng: random.Random, log: Log, folder: str) -> None:
    """Edit files of one's own folder, take each in at once, now and then remove one."""
    with trusting_new_store(rig.home, trust_list()):
        app = App.open(rig.home, load([], CFG), create=True)
    with app, app.parser() as parser:
        app.pool().start()
        log.say("ready")
        while True:
            name = f"{folder}/{rng.randrange(FILES)}.md"
            word = "".join(rng.choices(string.ascii_lowercase, k=12))
            log.say("try", name, word)
            rig.write({name: text(word)})
            report = app.adder(parser, AddOptions()).add([str(rig.sources / name)])
            (line,) = report.docs
            log.say("ack", name, word)
            if rng.random() > _EDITED_SHARE:
                log.say("rm", name)
                tombstone(app.store, [DocId(line.doc_id)])
                app.catch_up()


def command(rig: Rig, log: Log, *args: object) -> None:
    """The same command again and again; one that fails is told."""
    log.say("ready")
    while True:
        out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                kb.main(rig.args(*args), standalone_mode=False, obj={})
            except SystemExit as ended:
                if ended.code:
                    log.say("fail", str(args[0]), str(ended.code))
            except Exception as error:
                log.say("fail", str(args[0]), repr(error))
        if err.getvalue():
            log.say("fail", str(args[0]), " / ".join(err.getvalue().splitlines()))


def live(rig: Rig, role: str, seed: int, log: Log) -> None:
    rng = random.Random(seed)
    match role:
        case "anna" | "bert":
            edit_and_add(rig, rng, log, role)
        case "add":
            command(rig, log, "add", "-r", rig.sources, "--json")
        case "worker":
            command(rig, log, "worker", "--drain")
        case "search":
            command(rig, log, "search", "these words stand", "--json")
        case "compact":
            command(rig, log, "compact", "--grace-min", "0")
        case "sync":
            command(rig, log, "sync-all", "--interval-min", "0", "--json")
        case _:
            raise ValueError(role)


def main(root: Path) -> None:
    rig = Rig(root)
    alive: set[int] = set()
    warm_up()
    try:
        for line in sys.stdin:
            verb, *rest = line.split()
            if verb == "reap":
                pid = int(rest[0])
                alive.discard(pid)
                answer: Any = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            else:
                answer = os.fork()
                if answer == 0:
                    log = Log(Path(rest[1]))
                    try:
                        live(rig, verb, int(rest[0]), log)
                    except BaseException as error:
                        log.say("fail", verb, repr(error))
                    finally:
                        os._exit(1)
                alive.add(answer)
            print(answer, flush=True)
    finally:
        for pid in alive:
            os.kill(pid, signal.SIGKILL)


def warm_up() -> None:
    """Import what children would each import anew; nothing is opened."""
    import kb_cli.add
    import kb_cli.compact
    import kb_cli.search
    import kb_cli.sync_all
    import kb_cli.worker
    import lmdb
    import numpy as np
    import tantivy

    import kb.intake.embed.hashing
    import kb.intake.sync.sync_all
    import kb.intake.worker.pool
    import kb.search.engine
    import kb.search.index
    import kb.upkeep.compactor

    assert all((lmdb, np, tantivy, kb_cli, kb))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
