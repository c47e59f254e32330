"""When a push is tried again, by a clock of the test's own."""

import pytest

from kb.intake.git.remote import Remote
from kb.knowledge.notebook.push_state import Target, after, is_due, wait_ms
from kb.knowledge.notebook.sending import (
    Outcome,
    PushAccepted,
    PushFailed,
    PushRejected,
    RemoteAhead,
)
from kb.model.push import Push

NOW = 1_700_000_000_000
HOUR = 3_600_000
MISSED = PushFailed(detail="it cannot be reached")


def target(commit: str = "a", remote: str = "r", branch: str = "refs/heads/main") -> Target:
    return Target(
        shown=remote,
        remote=Remote(kind="local", path=remote),
        problem="",
        branch=branch,
        commit=commit * 40,
    )


def tried(
    outcome: Outcome, known: Push | None = None, now_ms: int = NOW, commit: str = "a"
) -> Push:
    return after(known, target(commit), outcome, now_ms, 0.0)


def test_a_push_that_went_well_is_due_with_the_next_commit() -> None:
    """And not before, however long it takes; what failed before is forgotten."""
    failed = tried(MISSED)
    level = tried(PushAccepted(), failed, NOW + 1)
    assert (level.state, level.attempts, level.next_ms, level.last_error) == (
        "pushed",
        0,
        None,
        None,
    )
    assert (level.pushed_commit, level.pushed_ms) == ("a" * 40, NOW + 1)
    assert not is_due(level, target(), NOW + 100 * HOUR)
    assert is_due(level, target("b"), NOW + 1)


def test_what_was_never_tried_is_due() -> None:
    """So is another remote, and another branch: what is known of one says nothing of others."""
    assert is_due(None, target(), NOW)
    known = tried(PushRejected(detail="no"))
    assert not is_due(known, target(), NOW)
    assert is_due(known, target(remote="s"), NOW)
    assert is_due(known, target(branch="refs/heads/other"), NOW)
    elsewhere = after(known, target(remote="s"), MISSED, NOW, 0.0)
    assert (elsewhere.remote, elsewhere.attempts) == ("s", 1)


def test_a_dead_remote_is_tried_ever_more_rarely() -> None:
    """Twice as long each time, to an hour; new commits do not hurry it."""
    known, now_ms, waits = None, NOW, []
    for count in range(1, 13):
        known = tried(MISSED, known, now_ms, commit="abcdef"[count % 6])
        assert (known.state, known.attempts) == ("waiting", count)
        assert known.next_ms is not None
        waits.append((known.next_ms - now_ms) // 1000)
        assert not is_due(known, target("f"), known.next_ms - 1)
        now_ms = known.next_ms
        assert is_due(known, target(), now_ms)
    assert waits == [15, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]


@pytest.mark.parametrize("attempts", [1, 2, 9, 10_000])
def test_waits_are_spread(attempts: int) -> None:
    """By up to a half, so that many that lost one remote do not come back at once."""
    longest = wait_ms(attempts, 0.0)
    assert wait_ms(attempts, 1.0) == longest // 2
    assert longest // 2 < wait_ms(attempts, 0.5) < longest <= HOUR


def test_a_remote_that_has_moved_on() -> None:
    """It is looked at hourly, and after a commit of ours, but at most once a minute."""
    level = tried(PushAccepted())
    known = tried(RemoteAhead(commit="c" * 40), level, NOW)
    assert (known.state, known.remote_commit, known.pushed_commit) == (
        "diverged",
        "c" * 40,
        "a" * 40,
    )
    assert known.last_error is not None
    assert "fetch and merge" in known.last_error
    assert not is_due(known, target(), NOW + HOUR - 1)
    assert is_due(known, target(), NOW + HOUR)
    assert not is_due(known, target("b"), NOW + 59_999)
    assert is_due(known, target("b"), NOW + 60_000)
    assert tried(PushAccepted(), known, NOW + 60_000, "b").remote_commit is None


def test_a_remote_that_will_not_have_it() -> None:
    """It is asked hourly and no sooner, whatever is committed: a login must not be locked out."""
    known = tried(PushRejected(detail="it needs a login"))
    assert (known.state, known.last_error) == ("refused", "it needs a login")
    assert not is_due(known, target("b"), NOW + HOUR - 1)
    assert is_due(known, target(), NOW + HOUR)


def test_a_clock_that_was_set_back_stops_nothing() -> None:
    """A try that seems to lie hours ahead does not hold up the next."""
    known = tried(MISSED, None, NOW + 48 * HOUR)
    assert is_due(known, target(), NOW)
