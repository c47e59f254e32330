"""What does a YAML document hold? Mappings, lists and scalars, and nothing that it could make."""

from collections.abc import Iterable
from typing import Any, Final

_DEPTH_MAX: Final = 32
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})

Tree = dict[str, Any] | list[Any] | str | None


class NotYaml(ValueError):
    """It is no YAML that is read here: `detail` says why, `line` where, from 1, if it is known."""

    def __init__(self, detail: str, line: int | None = None) -> None:
        """Keep both, and say both."""
        super().__init__(f"line {line}: {detail}" if line else detail)
        self.detail = detail
        self.line = line


def yaml_tree(text: str) -> Tree:
    """The one document in `text`: dicts, lists, and each scalar as it is written.

    A key without a value is left out. Works on the event stream, so that no tag makes anything.
    Raises NotYaml, also for an alias, for a key that stands twice or is no scalar, for a second
    document, and for more than 32 levels.
    """
    import yaml

    try:
        return _build_tree(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise NotYaml(error.problem or "not YAML", mark.line + 1 if mark else None) from error
    except yaml.YAMLError as error:
        raise NotYaml("it has characters that YAML does not allow") from error


def yaml_lines(text: str) -> dict[tuple[str, ...], int]:
    """The line, from 1, of each key and list item of what `yaml_tree` has read, by the way to it.

    An item's part of the way is its number, from 0.
    """
    import yaml

    lines: dict[tuple[str, ...], int] = {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    waiting: list[tuple[tuple[str, ...], Any]] = [((), yaml.compose(text, Loader=loader))]
    while waiting:
        path, node = waiting.pop()
        parts: list[tuple[str, Any, Any]] = []
        if isinstance(node, yaml.MappingNode):
            parts = [(key.value, key, value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            parts = [(str(place), item, item) for place, item in enumerate(node.value)]
        for name, marked, value in parts:
            lines[*path, name] = marked.start_mark.line + 1
            waiting.append(((*path, name), value))
    return lines


def _build_tree(events: Iterable[Any]) -> Tree:
    import yaml

    tree = _TreeBuilder()
    for event in events:
        try:
            match event:
                case yaml.ScalarEvent():
                    is_null = bool(event.implicit[0]) and event.value in _NULLS
                    tree.put(None if is_null else event.value)
                case yaml.MappingStartEvent():
                    tree.enter({})
                case yaml.SequenceStartEvent():
                    tree.enter([])
                case yaml.CollectionEndEvent():
                    tree.leave()
                case yaml.AliasEvent():
                    tree.alias()
                case yaml.DocumentStartEvent():
                    tree.begin()
        except NotYaml as error:
            raise NotYaml(error.detail, event.start_mark.line + 1) from None
    return tree.top


class _TreeBuilder:
    """A tree of which the innermost open part grows."""

    def __init__(self) -> None:
        self.top: Tree = None
        self._open: list[dict[str, Any] | list[Any]] = []
        self._keys: list[str | None] = []  # None while a key is due
        self._is_begun = False

    def begin(self) -> None:
        if self._is_begun:
            raise NotYaml("it is more than one document")
        self._is_begun = True

    def alias(self) -> None:
        raise NotYaml("it uses an alias, and aliases are not followed")

    def enter(self, part: dict[str, Any] | list[Any]) -> None:
        self.put(part)
        self._open.append(part)
        self._keys.append(None)
        if len(self._open) > _DEPTH_MAX:
            raise NotYaml(f"it is nested over {_DEPTH_MAX} levels")

    def leave(self) -> None:
        self._open.pop()
        self._keys.pop()

    def put(self, value: Tree) -> None:
        if not self._open:
            self.top = value
            return
        inside, key = self._open[-1], self._keys[-1]
        if isinstance(inside, list):
            inside.append(value)
        elif key is not None:
            self._keys[-1] = None
            if value is not None:
                inside[key] = value
        elif not isinstance(value, str):
            raise NotYaml("a key is not a plain text")
        elif value in inside:
            raise NotYaml(f"the key {value[:60]!r} stands twice")
        else:
            self._keys[-1] = value
