"""How does kb start a child of its own? With one of its modules and a small environment.

For work that may end the process that does it, as reading a damaged file may.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path


def module_argv(module: str, *words: str) -> list[str]:
    """What runs a module of kb by this very interpreter."""
    # -P: the working directory may hold a module of someone else's.
    return [sys.executable, "-P", "-m", module, *words]


def module_env(inherited: Iterable[str], **extra: str) -> dict[str, str]:
    """These variables as they are, `said` besides, and where kb itself is found."""
    env = {key: os.environ[key] for key in inherited if key in os.environ}
    here = str(Path(__file__).resolve().parents[2])
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    return env | extra | {"PYTHONPATH": os.pathsep.join(paths)}
