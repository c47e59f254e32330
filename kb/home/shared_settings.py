"""The settings that a home in a database has itself."""

import msgspec

from kb.errors import KbError, NotFound, OwnerOnly
from kb.model.config import ContentSettings
from kb.store.bucket.place import place_of
from kb.store.content.database import DatabaseAddress
from kb.store.store import Store


def settings_in(address: DatabaseAddress) -> tuple[ContentSettings, str]:
    """The settings of a home, and why they cannot be told, if so."""
    try:
        with Store.open_database(address, create=False) as store, store.read() as txn:
            place = place_of(txn)
    except NotFound:
        return ContentSettings(), ""
    except KbError as error:
        return ContentSettings(), f"what the home sets itself is not known: {error}"
    settings = ContentSettings(bucket=place.url, endpoint=place.endpoint, region=place.region)
    return settings, ""


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
