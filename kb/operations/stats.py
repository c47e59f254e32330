"""How much there is in an open home: docs, chunks, jobs and bytes, counted."""

import contextlib
from typing import TYPE_CHECKING

from kb.errors import ModelMissing

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.home.stats import Stats
    from kb.model.node import NodeCaches

    StatsResult = Stats
    """Counts; sizes in bytes."""
    CachesOfNode = NodeCaches
    """How it stands with the caches of one machine."""


def run(app: "App") -> "StatsResult":
    """Count what a home has. Reads every doc and looks at every file. Raises ModelMissing.

    Who does not own it learns numbers: no doc whose work failed, no cause, and no remote.
    """
    from kb.home.stats import counted, without_names

    stats = counted(app)
    return stats if app.caller.operator else without_names(stats)


def length_warning(app: "App") -> str | None:
    """That the model in use reads less of an entry than the settings ask for, in words.

    None where it reads enough, where there are no entries, and where the model is not there.
    """
    with contextlib.suppress(ModelMissing):
        return app.shortened()
    return None
