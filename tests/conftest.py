"""What every test has: a data folder of its own, and children that signals end."""

import gc
import os
import signal
from collections.abc import Iterator
from types import FrameType

import hypothesis
import pytest
from postgres_server import PostgresServer, running_server
from timings import Timings

from kb.store.content.database import DatabaseAddress

# How fast examples are made is the machine's, and what else runs on it.
hypothesis.settings.register_profile(
    "any machine",
    # `make test-properties` has more.
    max_examples=int(os.environ.get("KB_EXAMPLES", "40")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    deadline=None,
)
hypothesis.settings.load_profile("any machine")

# Each takes half a gigabyte, with the servers that it starts.
_WORKERS_MAX = 16
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def _stay(_number: int, _frame: FrameType | None) -> None:
    """Take a signal, and go on."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--timings", metavar="FILE", help="write there what each test costs")


def pytest_configure(config: pytest.Config) -> None:
    """Measure the tests if asked to, and let their children be ended.

    Let no child of a test inherit that a signal is ignored, as nohup and `&` make it.

    The process of the tests itself is still not ended by what it was to ignore; a handler is not
    inherited by the program that a child becomes, as ignoring would be.
    """
    # What is collected stays, so that to look for what does not is lost time.
    gc.disable()
    if path := config.getoption("timings"):
        is_worker = hasattr(config, "workerinput")
        config.pluginmanager.register(Timings(path, writes=not is_worker))
    take_signals()


def take_signals() -> None:
    """Stay where a signal that ends programs was ignored, and hand no such ignoring on."""
    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _stay)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)


def pytest_collection_finish() -> None:
    """Take what pytest has collected out of the collector's rounds, each of which would walk it."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two workers for each core: half of a test's time goes by while it waits for a process."""
    return min(2 * (os.cpu_count() or 1), _WORKERS_MAX)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt in the process of the test, however that was started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def _own_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL server, started once; each test takes a home of its own."""
    with running_server() as server:
        yield server


@pytest.fixture
def address(postgres: PostgresServer) -> DatabaseAddress:
    """The address of a home that is not there yet."""
    return postgres.new_address()
