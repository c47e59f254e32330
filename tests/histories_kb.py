"""kb's command line with a clock that a history sets, and with models that need no loading.

python histories_kb.py OFFSET_MS WORD...
"""

import sys
import time
from typing import Final

from kb.home.services.models import SharedModels
from kb.intake.embed.hashing import HashingEmbedder
from kb.intake.embed.protocol import Embedder
from kb.model.clock import SystemClock
from kb.model.embedder import EmbedderChoice

_DIMS: Final = {"other": 96}


class Models(SharedModels):
    """Hashing embedders of two sizes, by the name of the model."""

    def made(self, choice: EmbedderChoice, threads: int, server: object = None) -> Embedder:
        return HashingEmbedder(_DIMS.get(choice.model, 64))


class SetClock(SystemClock):
    """The machine's clock, and how far off it is."""

    def __init__(self, offset_ms: int) -> None:
        self.offset_ms = offset_ms

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.offset_ms

    def jump(self, ms: int) -> None:
        """Set it forward, or back."""
        self.offset_ms += ms


def main() -> None:
    """Run the command line."""
    clock = SetClock(int(sys.argv[1]))
    SystemClock.now_ms = lambda _: clock.now_ms()  # type: ignore[method-assign, assignment]
    SharedModels.made = Models.made  # type: ignore[method-assign, assignment]
    sys.argv = ["kb", *sys.argv[2:]]
    from kb_cli.main import main as kb

    kb()


if __name__ == "__main__":
    main()
