"""The error tree, as drawn and as it is."""

import re

import pytest

from kb import errors
from kb.errors import KbError

_LINE = re.compile(r"^(?P<lead>[│├└─ ]*)(?P<name>[A-Z]\w+) +(?P<code>\d)(?: {2,}\S.*)?$")


def drawn() -> dict[str, tuple[str | None, int]]:
    """Name -> (parent, exit code), read from the module's docstring."""
    tree: dict[str, tuple[str | None, int]] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        depth = len(found["lead"]) // 4
        above[depth:] = [found["name"]]
        tree[found["name"]] = (above[depth - 1] if depth else None, int(found["code"]))
    return tree


def every_class() -> list[type[KbError]]:
    """KbError and all that descends from it within its module."""
    found: list[type[KbError]] = []
    waiting: list[type[KbError]] = [KbError]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += [c for c in one.__subclasses__() if c.__module__ == errors.__name__]
    return found


CLASSES = every_class()
FIELDS = {
    "what": "listing tokens",
    "role": "alice",
    "id": "d123",
    "place": "/home/kb",
    "plugin": "docling",
    "source": "notes.md",
    "candidates": "d1231, d1232",
    "opened_by": 42,
    "token": 3,
    "folder": "/caches/kb",
}


def test_the_drawing_is_the_tree() -> None:
    """Every class is drawn under its parent with its exit code, and nothing else is drawn."""
    real = {
        cls.__name__: (None if cls is KbError else cls.__mro__[1].__name__, cls.exit_code)
        for cls in CLASSES
    }
    assert drawn() == real


def test_every_error_of_the_module_is_in_the_tree() -> None:
    """The module defines no exception outside the tree."""
    defined = {
        thing
        for thing in vars(errors).values()
        if isinstance(thing, type) and thing.__module__ == errors.__name__
    }
    assert defined == set(CLASSES)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_says_something(cls: type[KbError]) -> None:
    """The message is one clear line that holds every field its template asks for."""
    asked = set(re.findall(r"{(\w+)}", cls.template))
    message = str(cls("it went wrong", **{k: v for k, v in FIELDS.items() if k in asked}))
    assert message == message.strip() != ""
    assert "\n" not in message
    assert "{" not in message
    for name in asked - {"detail"}:
        assert str(FIELDS[name]) in message
    assert ("it went wrong" in message) == ("detail" in asked)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_has_a_docstring_and_a_known_code(cls: type[KbError]) -> None:
    """Each class says what it means, and exits with 1 to 6."""
    assert cls.__doc__
    assert cls.__doc__ != cls.__mro__[1].__doc__
    assert 1 <= cls.exit_code <= 6


def test_a_missing_field_is_noticed_at_once() -> None:
    """A raise that forgets a field is a KeyError there, not a half message later."""
    with pytest.raises(KeyError):
        errors.NotFound()


def test_fields_are_kept() -> None:
    """What an error was raised with can be asked of it."""
    error = errors.StaleToken(id="j1", token=4)
    assert error.fields == {"detail": "", "id": "j1", "token": 4}


def test_a_source_error_tells_its_reason_alone() -> None:
    """Lists that name the source already show the rest of the message."""
    error = errors.TooLarge("70 MB, over 50 MB", source="notes.pdf")
    assert (str(error), error.reason) == ("notes.pdf: 70 MB, over 50 MB", "70 MB, over 50 MB")


def test_braces_in_a_detail_are_text() -> None:
    """What a source is called or says is never taken for a template."""
    assert str(errors.Unreadable("{x} {0}", source="{id}")) == "{id}: {x} {0}"
