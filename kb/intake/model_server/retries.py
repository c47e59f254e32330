"""When is a busy or failing server asked again, and when no more?"""

from typing import Final

from kb.errors import ModelUnavailable
from kb.intake.model_server.peer import Peer
from kb.intake.model_server.timing import Timing
from kb.model.deadline import Deadline

WAIT_S_MAX: Final = 60.0
_BACKOFF_S: Final = 0.5
_BACKOFF_S_MAX: Final = 8.0


class Retries:
    """The tries of one question, at most `tries` in all, within `total_s`.

    The wait between two tries is the server's Retry-After (at most WAIT_S_MAX), or twice the wait
    before, with some jitter.
    """

    def __init__(self, peer: Peer, *, tries: int, total_s: float, timing: Timing) -> None:
        self.deadline = Deadline(timing.clock, total_s)
        self._peer = peer
        self._tries = tries
        self._timing = timing
        self._number = 1

    def wait(self, error: ModelUnavailable) -> None:
        """Sleep until the next try. Raises ModelUnavailable where there is none."""
        if self._number == self._tries:
            raise self.given_up(error)
        backoff_s = min(_BACKOFF_S_MAX, _BACKOFF_S * 2 ** (self._number - 1))
        chance_s = backoff_s * self._timing.random()
        if error.retry_after_s is None:
            wait_s = backoff_s / 2 + chance_s / 2
        else:
            wait_s = error.retry_after_s + chance_s
            if error.retry_after_s > WAIT_S_MAX:
                raise self.given_up(error)
        if self.deadline.is_over or self.deadline.left_s() <= wait_s:
            raise self.given_up(error)
        self._timing.sleep(wait_s)
        self._number += 1

    def given_up(self, error: ModelUnavailable) -> ModelUnavailable:
        """The error of the last try, which says how many there were."""
        tried = f"; tried {self._number} times" if self._number > 1 else ""
        wait_s = error.retry_after_s
        later = "later" if wait_s is None else f"in {wait_s} s"
        detail = f"{error.fields['detail']}{tried}; try again {later}"
        return self._peer.unavailable(detail, wait_s)
