"""Command line and environment of child processes that run one of kb's own modules.

For work that may crash its process, such as reading a damaged file.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path


def module_argv(module: str, *words: str) -> list[str]:
    """The command line that runs a module of kb with this interpreter."""
    # -P: the working directory may contain somebody else's modules.
    return [sys.executable, "-P", "-m", module, *words]


def module_env(inherited: Iterable[str], **extra: str) -> dict[str, str]:
    """An environment of the `inherited` variables, the `extra` ones, and a path to kb itself."""
    env = {key: os.environ[key] for key in inherited if key in os.environ}
    here = str(Path(__file__).resolve().parents[2])
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    return env | extra | {"PYTHONPATH": os.pathsep.join(paths)}
