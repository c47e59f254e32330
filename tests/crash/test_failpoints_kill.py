"""A kill at every durable step of the real commands, and what the next ones make of it."""

import shutil
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import scenario
from crash_rig import Rig
from scenario import Scenarios

KILLED: Final = -signal.SIGKILL
# Which command is armed -> failpoint -> at which of its hits; all are hit in every run. The other
# hits have their turn in test_every_hit_of_every_failpoint.
ADD: Final[dict[str, tuple[int, ...]]] = {
    "content.before_write": (1,),
    "content.after_write": (4,),
    "content.after_fsync": (1,),
    "content.after_link": (2,),
    "store.before_commit": (1, 5),
    "store.after_commit": (2,),
    "ingest.before_commit": (1,),
    "ingest.after_commit": (1,),
    "jobs.after_claim": (2,),
    "worker.after_chunk": (1,),
    "worker.after_embed": (1,),
    "worker.before_finish": (1,),
    "worker.after_finish": (2,),
    "lexical.before_commit": (1,),
    "lexical.after_commit": (1,),
    "lexical.after_manifest": (1,),
    "dense.after_segment": (1,),
    "dense.before_rename": (1,),
    "dense.after_rename": (1,),
}
COMPACT: Final[dict[str, tuple[int, ...]]] = {
    "store.before_commit": (1,),
    "store.after_commit": (1, 5),
    "lexical.before_commit": (1,),
    "lexical.after_manifest": (2,),
    "lexical.before_switch": (1,),
    "dense.before_rename": (1,),
    "dense.after_rename": (1,),
    "compact.after_mark": (1,),
    "compact.before_delete": (1,),
    "compact.after_delete": (1,),
    "compact.after_truncate": (1,),
}
FIRST_ADD: Final[dict[str, tuple[int, ...]]] = {
    "content.after_link": (1,),
    "store.before_commit": (1, 2),
    "store.after_commit": (1,),
    "dense.before_rename": (1,),
}
# A lease is renewed while the work on it lasts longer than a third of it.
LONG_WORK: Final = "worker.after_embed=pause"
SHORT_LEASE: Final = ("work.lease_ms=1000",)


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Scenarios:
    return scenario.make(tmp_path_factory.mktemp("stories"))


def add_until_killed(rig: Rig, armed: str, cfg: tuple[str, ...] = ()) -> int:
    return rig.run("add", "-r", rig.sources, "--json", armed=armed, cfg=cfg).code


def compact_until_killed(rig: Rig, armed: str) -> int:
    return rig.run("compact", "--grace-min", "0", armed=armed).code


def cases(table: dict[str, tuple[int, ...]]) -> list[tuple[str, int]]:
    return [(name, hit) for name, hits in table.items() for hit in hits]


@pytest.mark.parametrize(("name", "hit"), cases(ADD))
def test_add_killed(stories: Scenarios, tmp_path: Path, name: str, hit: int) -> None:
    """Of an add killed anywhere nothing acknowledged is lost, nothing half; again, it is done."""
    rig = stories.edited.copied(tmp_path)
    assert add_until_killed(rig, f"{name}=kill@{hit}") == KILLED
    scenario.assert_acknowledged_is_whole(rig)
    scenario.assert_second_is_all(rig)


@pytest.mark.parametrize(("name", "hit"), cases(COMPACT))
def test_compact_killed(stories: Scenarios, tmp_path: Path, name: str, hit: int) -> None:
    """Of a compaction killed anywhere no live doc is touched; again, it comes to its end."""
    rig = stories.worn.copied(tmp_path)
    assert compact_until_killed(rig, f"{name}=kill@{hit}") == KILLED
    scenario.assert_acknowledged_is_whole(rig)
    scenario.assert_second_is_all(rig)


@pytest.mark.parametrize(("name", "hit"), cases(FIRST_ADD))
def test_first_add_killed(stories: Scenarios, tmp_path: Path, name: str, hit: int) -> None:
    """A home whose very first command was killed is a home, or none; the next one fills it."""
    rig = Rig(tmp_path, stories.edited.sources)
    assert add_until_killed(rig, f"{name}=kill@{hit}") == KILLED
    rig.check()
    rig.drain()
    rig.add()
    found = rig.found(scenario.SECOND.values())
    assert found == {word: [name] for name, word in scenario.SECOND.items()}
    rig.check()


@pytest.mark.parametrize("hit", [2])
def test_killed_while_a_lease_is_renewed(stories: Scenarios, tmp_path: Path, hit: int) -> None:
    """A worker killed after it renewed a lease leaves its job to the next one, at once."""
    rig = stories.edited.copied(tmp_path)
    armed = f"{LONG_WORK};jobs.after_renew=kill@{hit}"
    assert add_until_killed(rig, armed, SHORT_LEASE) == KILLED
    scenario.assert_acknowledged_is_whole(rig)
    scenario.assert_second_is_all(rig)


def hits_of_add(
    stories: Scenarios, root: Path, armed: str = "", cfg: tuple[str, ...] = ()
) -> "Counter[str]":
    rig = stories.edited.copied(root)
    assert add_until_killed(rig, armed, cfg) == 0
    return Counter(rig.hit())


def hits_of_compact(stories: Scenarios, root: Path) -> "Counter[str]":
    rig = stories.worn.copied(root)
    assert compact_until_killed(rig, "") == 0
    return Counter(rig.hit())


def test_every_failpoint_fires(stories: Scenarios, tmp_path: Path) -> None:
    """Every declared failpoint is in the story's way, and is armed by some test here."""
    hits = hits_of_add(stories, tmp_path / "add", LONG_WORK, SHORT_LEASE)
    hits += hits_of_compact(stories, tmp_path / "compact")
    assert sorted(hits) == sorted(scenario.POINTS)
    armed = {*ADD, *COMPACT, "jobs.after_renew"}
    assert sorted(armed) == sorted(scenario.POINTS)


def test_a_compaction_has_all_to_do(stories: Scenarios, tmp_path: Path) -> None:
    """Where it is killed, one run marks, removes, merges and truncates."""
    rig = stories.worn.copied(tmp_path)
    report = rig.call("compact", "--grace-min", 0, "--json").json
    counts = {name: n for name, n in report.items() if type(n) is int and name != "readers_reaped"}
    assert [name for name, n in counts.items() if n == 0] == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_hit_of_every_failpoint(stories: Scenarios, tmp_path: Path) -> None:
    """Wherever in the story the kill comes, all of the above holds."""
    steps: list[tuple[Rig, Callable[[Rig, str], int], Counter[str]]] = [
        (stories.edited, add_until_killed, hits_of_add(stories, tmp_path / "add")),
        (stories.worn, compact_until_killed, hits_of_compact(stories, tmp_path / "compact")),
    ]
    for before, command, hits in steps:
        killed = 0
        for name, count in hits.items():
            for hit in range(1, count + 1):
                rig = before.copied(tmp_path / f"{command.__name__}-{name}-{hit}")
                code = command(rig, f"{name}=kill@{hit}")
                # Threads share the work of an add as they come to it, so its last hits may not be
                # reached.
                assert code == KILLED or (code == 0 and before is stories.edited)
                killed += code == KILLED
                scenario.assert_acknowledged_is_whole(rig)
                scenario.assert_second_is_all(rig)
                shutil.rmtree(rig.root)
        print(f"{command.__name__}: {killed} of {hits.total()} hits of {len(hits)} failpoints")
