"""The machine's clocks, and the one that tests move."""

import time

from fakes import FakeClock

from kb.model.clock import Clock, SystemClock


def test_the_system_clocks() -> None:
    """Wall time is of today, lease time does not go back, and the boot has one name."""
    clock: Clock = SystemClock()
    assert abs(clock.now_ms() - time.time() * 1000) < 60_000
    first = clock.lease_ms()
    assert 0 < first <= clock.lease_ms()
    assert clock.boot_id() == SystemClock().boot_id() != ""


def test_the_fake_clock_moves_only_when_told() -> None:
    """Advancing moves both clocks, a jump the wall alone, a reboot starts the lease clock anew."""
    clock = FakeClock(now_ms=100, lease_ms=10)
    clock.advance(5)
    clock.jump(-50)
    assert (clock.now_ms(), clock.lease_ms()) == (55, 15)
    boot = clock.boot_id()
    clock.reboot(lease_ms=2)
    assert (clock.now_ms(), clock.lease_ms()) == (55, 2)
    assert clock.boot_id() != boot
