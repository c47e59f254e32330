"""What operations on a pack have in common: which home has it, and the names of its docs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from kb.model.doc import Scope
from kb.operations.fields import WORD_CHARS_MAX

if TYPE_CHECKING:
    from kb.home.open_home import OpenHome
    from kb.home.spaces.spaces import Spaces
    from kb.knowledge.packs.load import Pack

PackName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=WORD_CHARS_MAX,
        description="A pack's id or selector, as kb_pack_list says it.",
    ),
]
DocName = Annotated[
    str, Meta(min_length=1, max_length=1_000, description="A doc's selector or id.")
]
PackKind = Annotated[
    str,
    Meta(min_length=1, max_length=WORD_CHARS_MAX, description="Only docs of this kind."),
]
Prefix = Annotated[str, Meta(max_length=512, description="Only docs whose selector starts so.")]
Target = Annotated[str, Meta(max_length=1_000, description="Only docs that link to this doc.")]

Result = TypeVar("Result", bound=Struct)


def has_packs(spaces: "Spaces", scope: Scope) -> bool:
    """Whether a pack is registered that the scope sees."""
    from kb.home.spaces.each import ask_each
    from kb.knowledge.packs.register import listed

    def any_listed(home: "OpenHome") -> bool:
        with home.store.read() as txn:
            return bool(listed(txn, home.scope(scope)))

    return any(has for _, has in ask_each(spaces.homes, any_listed, list(spaces.failed)))


def of_pack(
    spaces: "Spaces", name: str, scope: Scope, answer: "Callable[[Pack], Result]"
) -> Result:
    """What `answer` says of a pack, in the first space that has it.

    Its warnings begin with those of spaces that could not be asked. Raises UnknownPack and
    SharedSelector, and what reading the pack raises.
    """
    pack, warnings = registered_pack(spaces, name, scope)
    result = answer(pack)
    if not warnings:
        return result
    own: tuple[str, ...] = getattr(result, "warnings", ())
    return msgspec.structs.replace(result, warnings=(*warnings, *own))


def registered_pack(spaces: "Spaces", name: str, scope: Scope) -> "tuple[Pack, tuple[str, ...]]":
    """A pack of the first space that has it, and warnings of spaces that could not be asked.

    Raises UnknownPack and SharedSelector, and what reading the pack raises.
    """
    from kb.home.spaces.each import warnings_of
    from kb.knowledge.packs.register import open_registered, resolve
    from kb.operations.locate import home_with, locate_pack

    failed = list(spaces.failed)
    located = locate_pack(spaces.homes, name, scope, failed)
    home = home_with(spaces.homes, located)
    with home.store.read() as txn:
        record = resolve(txn, located[home.name], home.scope(scope))
    return open_registered(record, home.content.paths.root), warnings_of(failed, scope)
