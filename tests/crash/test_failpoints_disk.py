"""A disk that fails or fills up at every durable step of the real commands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import scenario
import sync_scenario
from crash_rig import Called, assert_one_clear_line
from loopback import serving
from scenario import Scenarios
from sync_scenario import SYNC

DONE, FAILED, DAMAGED = 0, 1, 5
ACTIONS: Final = ("eio", "enospc")
IN_COMPACT: Final = [name for name in scenario.POINTS if name.startswith("compact.")]
# Needs a lease that is renewed, so work that lasts.
RENEW: Final = "jobs.after_renew"
IN_ADD: Final = [name for name in scenario.POINTS if name not in (*IN_COMPACT, RENEW)]
IN_BOTH: Final = ["store.before_commit", "store.after_commit", "lexical.before_commit"]
# Where the exit code depends on what is wrong with the disk.
BY_ACTION: Final = ("content.before_write", "store.before_commit")


def cases(names: list[str]) -> list[tuple[str, str]]:
    """Each place with one of the two, in turn, and with both where they end differently."""
    return [
        (name, action)
        for number, name in enumerate(names)
        for turn, action in enumerate(ACTIONS)
        if name in BY_ACTION or turn == number % 2
    ]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Scenarios:
    return scenario.make(tmp_path_factory.mktemp("stories"))


def code_of(name: str, action: str) -> int:
    """The documented exit code of a failure at this place."""
    match name.partition(".")[0]:
        case "lexical" | "dense":
            # What was asked for is done; only a cache stayed behind, and the line says so.
            return DONE
        case "content" | "store" if action == "eio":
            return DAMAGED
        case _:
            return FAILED


def assert_told(said: Called, name: str, action: str) -> None:
    assert_one_clear_line(said)
    assert said.code == code_of(name, action)


@pytest.mark.parametrize(("name", "action"), cases(IN_ADD))
def test_add_on_a_failing_disk(stories: Scenarios, tmp_path: Path, name: str, action: str) -> None:
    """One line, the documented code, nothing acknowledged lost; with a sound disk it goes on."""
    rig = stories.edited.copied(tmp_path)
    assert_told(rig.run("add", "-r", rig.sources, armed=f"{name}={action}"), name, action)
    scenario.assert_acknowledged_is_whole(rig)
    scenario.assert_second_is_all(rig)


@pytest.mark.parametrize("action", ["enospc"])
def test_renewing_a_lease_on_a_failing_disk(
    stories: Scenarios, tmp_path: Path, action: str
) -> None:
    """A lease that cannot be renewed ends the command, not the job."""
    rig = stories.edited.copied(tmp_path)
    armed = f"worker.after_embed=pause;{RENEW}={action}"
    said = rig.run("add", "-r", rig.sources, armed=armed, cfg=("work.lease_ms=1000",))
    assert_told(said, RENEW, action)
    scenario.assert_acknowledged_is_whole(rig)
    scenario.assert_second_is_all(rig)


@pytest.mark.parametrize(("name", "action"), cases([*IN_COMPACT, *IN_BOTH]))
def test_compact_on_a_failing_disk(
    stories: Scenarios, tmp_path: Path, name: str, action: str
) -> None:
    """One line, the documented code, no live doc touched; with a sound disk it comes to its end."""
    rig = stories.worn.copied(tmp_path)
    said = rig.run("compact", "--grace-min", "0", armed=f"{name}={action}")
    assert_told(said, name, action)
    scenario.assert_acknowledged_is_whole(rig)
    scenario.assert_second_is_all(rig)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sync_scenario.SyncScenario]:
    with serving() as site:
        yield sync_scenario.make(tmp_path_factory.mktemp("story"), site)


@pytest.mark.parametrize(
    ("name", "action", "hit"),
    [
        ("store.before_commit", "enospc", 1),
        ("store.before_commit", "eio", 2),
        ("sync.before_remove", "eio", 1),
    ],
)
def test_sync_on_a_failing_disk(
    story: sync_scenario.SyncScenario, tmp_path: Path, name: str, action: str, hit: int
) -> None:
    """One line, the documented code, nothing lost or held; with a sound disk it goes on."""
    rig = story.behind.copied(tmp_path)
    assert_told(rig.run(*SYNC, armed=f"{name}={action}@{hit}"), name, action)
    sync_scenario.assert_goes_on(story, rig)
