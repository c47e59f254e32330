"""Key pairs, by which packs and registries are signed."""

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from kb.model.source import display_name

if TYPE_CHECKING:
    from nacl import signing

    SigningKey = signing.SigningKey


class NewKey(Struct, frozen=True, kw_only=True):
    """A key pair that was made."""

    key_file: str
    public_key: str


def make_key(path: Path) -> NewKey:
    """Make a key pair; the private key goes to a new file, for its owner only.

    Raises UsageError where the file is there already or cannot be written.
    """
    from kb.knowledge.packs.keys import new_key

    return NewKey(public_key=new_key(path), key_file=display_name(path))


def read_key(path: Path) -> "SigningKey":
    """The private key that a file holds. Raises UsageError, which says what is wrong."""
    from kb.knowledge.packs import keys

    return keys.read_key(path)
