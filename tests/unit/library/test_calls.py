"""Calls that several threads make, and the end that waits for them."""

import threading

import pytest

from kb.client.library.calls import HomeCalls
from kb.errors import HomeClosed, UsageError


def test_the_end_waits_for_a_call_and_lets_no_other_in() -> None:
    """It returns when the call has ended; meanwhile others are told that it is closed."""
    calls = HomeCalls("a home")
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with calls.call():
            inside.set()
            leave.wait()
            with calls.call():
                pass

    worker = threading.Thread(target=work)
    worker.start()
    inside.wait()
    closed: list[bool] = []
    closer = threading.Thread(target=lambda: closed.append(calls.close()))
    closer.start()
    calls.wait(30)
    with pytest.raises(HomeClosed, match="a home is closed here"), calls.call():
        pass
    assert closed == []
    leave.set()
    closer.join(timeout=30)
    worker.join(timeout=30)
    assert closed == [True]
    assert not calls.close()


def test_a_call_cannot_end_itself() -> None:
    """It would wait for itself; afterwards the home is as open as before."""
    calls = HomeCalls("a home")
    with calls.call(), pytest.raises(UsageError, match="inside one of its own calls"):
        calls.close()
    with calls.call():
        pass
    assert calls.close()


def test_waiting_ends_with_time_or_with_the_end() -> None:
    """Whoever waits outside of a call holds up nobody."""
    calls = HomeCalls("a home")
    calls.wait(0)
    waiter = threading.Thread(target=lambda: calls.wait(60))
    waiter.start()
    assert calls.close()
    waiter.join(timeout=30)
    assert not waiter.is_alive()
