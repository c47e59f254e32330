"""Registries of entries: those that an open home pulls from, and publishing one."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import UsageError
from kb.model.registry import RegistryRecord
from kb.model.source import display_name
from kb.operations.scopes import require_owner

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.knowledge.registry.publish import Published, PublishProblem
    from kb.operations.signing import SigningKey

    PublishResult = Published
    """What became of a registry."""
    PublishProblems = tuple[PublishProblem, ...]
    """What keeps files from being published."""


_REGISTRIES: Final = "what the home pulls entries from"


class RegistryList(Struct, frozen=True, kw_only=True):
    """The registries, in the order in which they were added."""

    registries: list[RegistryRecord]


class RemoveRegistryResult(Struct, frozen=True, kw_only=True):
    """A registry that is not known any more."""

    removed: str
    entries: int
    """Those that were pulled from it, which stay."""


class PublishRequest(Struct, frozen=True, kw_only=True):
    """The folder whose entries are published, and the registry: a folder or a .tar file."""

    folder: Path
    target: Path
    skip_bad: bool = False
    """Publish the rest where some files are wrong."""


def publish_request(folder: str, target: str, *, skip_bad: bool = False) -> PublishRequest:
    """A request for places as they were typed; UsageError where the target is in the folder."""
    source, to = Path(os.path.realpath(folder)), Path(os.path.realpath(target))
    if to.is_relative_to(source):
        raise UsageError("--to is inside the folder that you publish; name another place")
    return PublishRequest(folder=source, target=to, skip_bad=skip_bad)


def publish(
    app: "App",
    request: PublishRequest,
    *,
    key: "SigningKey | None" = None,
    on_refusal: "Callable[[PublishProblems], None]" = lambda _: None,
) -> "PublishResult":
    """Write the entries below a folder as a registry, signed by the key if there is one.

    They are cut and embedded by this home's model. Only what changed is written, and a text may
    change with its version only. Raises NotPublished where files are wrong and are not to be
    skipped, after `on_refusal` has heard which; UsageError, ReadOnlyHome, StoreFull.
    """
    from kb.knowledge.registry import publish as publishing
    from kb.knowledge.registry.target import target_at

    try:
        return publishing.publish(
            request.folder,
            target_at(request.target),
            app.registries.pipeline(),
            app.store.clock,
            to=display_name(request.target),
            key=key,
            skip_bad=request.skip_bad,
        )
    except publishing.NotPublished as error:
        on_refusal(error.problems)
        raise


def locate(place: str) -> str:
    """Where a registry is, however a person wrote it.

    Of a folder the index must be there and readable; a server is not asked. Raises UsageError.
    """
    from kb.knowledge.registry import register

    return register.located(place)


def add_registry(app: "App", name: str, location: str, trust: str | None) -> RegistryRecord:
    """Know a registry by a name; `trust` is the key that must have signed its index.

    Of two registries with one entry the one that was added first gives it. Raises UsageError for a
    name, a location or a key that cannot be one, or that is taken; ReadOnlyHome, OwnerOnly.
    """
    from kb.knowledge.registry import register

    require_owner(app, _REGISTRIES)
    return register.add(app.store, name, location, trust)


def list_registries(app: "App") -> RegistryList:
    """The registries in the order in which they were added."""
    from kb.knowledge.registry import register

    with app.store.read() as txn:
        return RegistryList(registries=register.listed(txn))


def remove_registry(app: "App", name: str) -> RemoveRegistryResult:
    """Know a registry no longer; what was pulled from it stays. Raises UnknownRegistry."""
    from kb.knowledge.registry import register

    require_owner(app, _REGISTRIES)
    record, entries = register.remove(app.store, name)
    app.registries.forget(record.name)
    return RemoveRegistryResult(removed=record.name, entries=entries)
