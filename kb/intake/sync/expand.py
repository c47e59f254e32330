"""Expands source arguments (files, folders, URLs, standard input) to distinct items."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kb.errors import SourceError
from kb.intake.sync.items import SkippedItem, SourceItem, walked_item, walked_name
from kb.intake.sync.walk import walk
from kb.model.source import STDIN_NAME, display_name


class SourceExpander:
    """Expands the source arguments of one call."""

    def __init__(
        self,
        *,
        recursive: bool,
        extensions: tuple[str, ...],
        home: Path | None = None,
        ignoring: bool = True,
        stdin_name: str = STDIN_NAME,
        machine: str = "",
    ) -> None:
        """`recursive` accepts folders, of which files with `extensions` count; `home` is skipped.

        `ignoring` is as for `walk`. `stdin_name` is the name of standard input. On a
        home that machines share, files are named with the `machine`.
        """
        self._recursive = recursive
        self._extensions = extensions
        self._home = home
        self._ignoring = ignoring
        self._stdin_name = stdin_name
        self._machine = machine
        self.folders: list[Path] = []
        """The folders among the arguments; complete after `items` has been consumed."""

    def items(self, sources: Iterable[str]) -> Iterator[SourceItem | SkippedItem]:
        """Yield every source once, even if it is named twice, or named and also in a folder."""
        explicit: dict[str, SourceItem | SkippedItem] = {}
        for source in sources:
            item = self._expand_one(source)
            if isinstance(item, Path):
                self.folders.append(item)
            else:
                explicit.setdefault(item.name, item)
        yield from explicit.values()
        # The rules of a folder do not apply to a file that is named itself.
        yielded = set(explicit)
        for folder in self.folders:
            for entry in walk(folder, self._extensions, home=self._home, ignoring=self._ignoring):
                name = walked_name(entry, self._machine)
                if name in yielded:
                    continue
                yielded.add(name)
                yield walked_item(entry, name)

    def _expand_one(self, source: str) -> SourceItem | SkippedItem | Path:
        """The item of an argument; a path if it is a folder to walk."""
        if source == STDIN_NAME:
            return SourceItem(self._stdin_name, None, is_explicit=True)
        if "://" in source[:12]:
            return _url_item(source)
        if not source:
            return SkippedItem(source, "an empty name", failed=True)
        # The real path gives a file one name, however it is spelled.
        path = Path(os.path.realpath(os.path.expanduser(source)))
        if not os.path.isdir(path):
            if not os.path.lexists(path) and _is_like_address(source):
                reason = f"no such file; a page has its whole address, as https://{source}"
                return SkippedItem(source, reason, failed=True)
            return SourceItem(display_name(path, self._machine), os.fspath(path), is_explicit=True)
        if not self._recursive:
            return SkippedItem(
                display_name(path, self._machine), "a folder, where a file is meant", failed=True
            )
        return path


def _is_like_address(source: str) -> bool:
    """Whether what is no file may be an address without its scheme."""
    host = source.partition("/")[0]
    ends = (".com", ".org", ".net", ".io", ".dev", ".edu")
    return host.startswith("www.") or (host.endswith(ends) and not host.startswith("."))


def _url_item(source: str) -> SourceItem | SkippedItem:
    from kb.intake.sync.url import url_lsid

    try:
        url = url_lsid(source).removeprefix("url:")
    except SourceError as error:
        return SkippedItem(source, error.reason, failed=True)
    return SourceItem(url, None, is_explicit=True, url=url)
