"""Which plugins are installed, and what do they give?

A plugin is an object that an entry point of an installed distribution names.
"""

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from kb.errors import PluginFailed

PluginGroup = Literal["kb.parsers", "kb.embedders", "kb.rerankers", "kb.llm"]
GROUPS: Final[tuple[PluginGroup, ...]] = get_args(PluginGroup)
_ENTRY_POINTS_BYTES_MAX: Final = 1 << 20


class InstalledPlugin(Struct, frozen=True, kw_only=True):
    """A plugin, and the distribution that brought it."""

    group: PluginGroup
    name: str
    target: str
    """`module:object`."""
    distribution: str
    version: str


@functools.cache
def installed(group: PluginGroup) -> tuple[InstalledPlugin, ...]:
    """The plugins of a group, by name; of two with one name the first on the path counts.

    Nothing of them is imported. Looked up once in a process.
    """
    if not _names_any_group():
        return ()
    from importlib.metadata import entry_points

    by_name: dict[str, InstalledPlugin] = {}
    for entry in entry_points(group=group):
        plugin = InstalledPlugin(
            group=group,
            name=entry.name,
            target=entry.value,
            distribution=entry.dist.name if entry.dist else "",
            version=entry.dist.version if entry.dist else "",
        )
        by_name.setdefault(plugin.name, plugin)
    return tuple(by_name[name] for name in sorted(by_name))


def load(plugin: InstalledPlugin, target: str = "") -> object:
    """Import what a plugin names, or another `module:object` of its. Raises PluginFailed.

    What it prints goes to standard error: standard output may be a document.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return target_of(target or plugin.target)
    except (Exception, SystemExit) as error:
        # A plugin's code may raise anything.
        raise failed(plugin, f"cannot be loaded ({type(error).__name__}: {error})") from error


def load_maker(plugin: InstalledPlugin) -> Callable[..., Any]:
    """The function that a plugin names. Raises PluginFailed."""
    make = load(plugin)
    if not callable(make):
        raise failed(plugin, f"names a {type(make).__name__}, not a function")
    return make


def target_of(target: str) -> object:
    """The object that `module:object` names. Raises what its import raises."""
    import importlib

    module, _, attributes = target.partition(":")
    value: object = importlib.import_module(module)
    for name in filter(None, attributes.split(".")):
        value = getattr(value, name)
    return value


def failed(plugin: InstalledPlugin, detail: str) -> PluginFailed:
    """What is wrong with a plugin."""
    return PluginFailed(detail, plugin=plugin.name, place=plugin.distribution)


@functools.cache
def _names_any_group() -> bool:
    """Whether a distribution on the path may have a plugin; looked up once in a process.

    To import importlib.metadata takes longer than this look, and most installs have no plugin.
    """
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as entries:
                names = [entry.path for entry in entries if entry.name.endswith(".dist-info")]
        except OSError:
            continue
        if any(_names_group(os.path.join(name, "entry_points.txt")) for name in names):
            return True
    return False


def _names_group(file: str) -> bool:
    # Without a stream, which takes four times as long: every distribution has such a file.
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        text = os.read(fd, _ENTRY_POINTS_BYTES_MAX)
    except OSError:
        return False
    finally:
        os.close(fd)
    return any(f"[{group}]".encode() in text for group in GROUPS)
