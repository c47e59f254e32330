"""May a pack replace the one that is registered under its id? Pure."""

import re
from typing import Final

from kb.errors import HeldBack, Refused
from kb.model.pack import PackRecord

_PARTS: Final = "([0-9]+)|([a-z]+)"
_VERSION_CHARS_MAX: Final = 128


def check_succession(
    registered: PackRecord | None, version: str, signed_by: str, *, downgrade: bool = False
) -> None:
    """Return if a pack of this version, signed by this key, may replace the registered one.

    An empty key means unsigned. An id that was signed once stays with its signer. Raises Refused if
    another key or nobody signed this one, HeldBack if its version is lower and `downgrade` does not
    allow that.
    """
    if registered is None:
        return
    if registered.signed_by and signed_by != registered.signed_by:
        whose = f"is signed by {signed_by}" if signed_by else "is not signed"
        detail = (
            f"{registered.pack_id} is registered as signed by {registered.signed_by}, "
            f"but this one {whose}; "
            f"if that is right, `kb pack rm {registered.pack_id}` makes room for it"
        )
        raise Refused(detail, source=registered.pack_id)
    if not downgrade and is_lower(version, registered.version):
        raise HeldBack(
            f"{registered.pack_id}: version {version} is lower than {registered.version}, which is "
            "registered; `kb pack add --downgrade` takes it"
        )


def is_lower(version: str, than: str) -> bool:
    """Whether a version is lower than another: 1.9 before 1.10, 2.0-rc1 before 2.0 and 2.0.0.

    Numbers are compared by value and words by letters; a missing version is lower than none.
    """
    if not version or not than:
        return False
    first, second = _key(version), _key(than)
    length = max(len(first), len(second))
    return _filled(first, length) < _filled(second, length)


# A word sorts before the end, which counts as 0, and before a number.
_END: Final = (1, 0, "")


def _key(version: str) -> list[tuple[int, int, str]]:
    text = version[:_VERSION_CHARS_MAX].lower().partition("+")[0]
    text = re.sub(r"^v(?=[0-9])", "", text)
    return [
        (1, int(number), "") if number else (0, 0, word)
        for number, word in re.findall(_PARTS, text, re.ASCII)
    ]


def _filled(key: list[tuple[int, int, str]], length: int) -> list[tuple[int, int, str]]:
    return [*key, *[_END] * (length - len(key))]
