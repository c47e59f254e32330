"""Which sources did a person name? Files, folders to walk, pages and standard input, each once."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kb.errors import SourceError
from kb.intake.sync.items import SkippedItem, SourceItem, walked_item
from kb.intake.sync.walk import walk
from kb.model.source import STDIN_NAME, display_name


class SourceExpander:
    """Makes items of what was named in one call."""

    def __init__(
        self,
        *,
        recursive: bool,
        extensions: tuple[str, ...],
        home: Path | None = None,
        stdin_name: str = STDIN_NAME,
    ) -> None:
        """`recursive` takes folders, `extensions` what of them; `home` is not gone into.

        Standard input is called `stdin_name`.
        """
        self._recursive = recursive
        self._extensions = extensions
        self._home = home
        self._stdin_name = stdin_name
        self.folders: list[Path] = []
        """Those that were named, once `items` has been gone through."""

    def items(self, sources: Iterable[str]) -> Iterator[SourceItem | SkippedItem]:
        """Every source once: one that is named twice, or named and in a folder, is one source."""
        named: dict[str, SourceItem | SkippedItem] = {}
        for source in sources:
            item = self._named(source)
            if isinstance(item, Path):
                self.folders.append(item)
            else:
                named.setdefault(item.name, item)
        yield from named.values()
        # What is named itself is that, and not what its folder's rules would make of it.
        known = set(named)
        for folder in self.folders:
            for seen in walk(folder, self._extensions, home=self._home):
                name = display_name(seen.path)
                if name in known:
                    continue
                known.add(name)
                yield walked_item(seen, name)

    def _named(self, source: str) -> SourceItem | SkippedItem | Path:
        """What a person named; a path where it is a folder to walk."""
        if source == STDIN_NAME:
            return SourceItem(self._stdin_name, None, is_explicit=True)
        if "://" in source[:12]:
            return _url_item(source)
        if not source:
            return SkippedItem(source, "an empty name", failed=True)
        # The real path, so that a file has one name however it was typed.
        path = Path(os.path.realpath(os.path.expanduser(source)))
        if not os.path.isdir(path):
            return SourceItem(display_name(path), path, is_explicit=True)
        if not self._recursive:
            return SkippedItem(display_name(path), "a folder; add it with --recursive", failed=True)
        return path


def _url_item(source: str) -> SourceItem | SkippedItem:
    from kb.intake.sync.url import url_lsid

    try:
        url = url_lsid(source).removeprefix("url:")
    except SourceError as error:
        return SkippedItem(source, error.reason, failed=True)
    return SourceItem(url, None, is_explicit=True, url=url)
