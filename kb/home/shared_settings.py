"""The settings that a home in a database has itself."""

from collections.abc import Callable

import msgspec

from kb.errors import KbError, NotFound, OwnerOnly
from kb.model.config import ContentSettings, Settings
from kb.store.bucket.place import BucketPlace, place_of
from kb.store.content.database import DatabaseAddress
from kb.store.store import Store


def settings_in(
    address: DatabaseAddress, settings: Settings, warn: Callable[[str], None]
) -> tuple[Settings, tuple[str, ...]]:
    """The settings with those of a home, and the names of these.

    Without an answer of its server they are as they were, and `warn` is told why.
    """
    place = BucketPlace()
    try:
        with Store.open_database(address, create=False) as store, store.read() as txn:
            place = place_of(txn)
    except NotFound:
        pass
    except KbError as error:
        warn(f"what the home sets itself is not known: {error}")
    content = ContentSettings(bucket=place.url, endpoint=place.endpoint, region=place.region)
    names = (name for name, value in msgspec.structs.asdict(content).items() if value)
    settings = msgspec.structs.replace(settings, content=content)
    return settings, tuple(f"content.{name}" for name in names)


def put_setting(address: DatabaseAddress, name: str, value: str) -> None:
    """Change a setting, and make the home if it is not there. As `use_bucket`, and OwnerOnly."""
    from kb.store.bucket_content import use_bucket

    field = "url" if name == "bucket" else name
    with Store.open_database(address) as store:
        if not store.caller.operator:
            raise OwnerOnly(what="what the home sets itself", role=store.caller.user)
        with store.read() as txn:
            place = place_of(txn)
        use_bucket(store, msgspec.structs.replace(place, **{field: value.rstrip("/")}))
