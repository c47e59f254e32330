"""Ed25519 keys that sign archives and registries. As text a key is base64 of its 32 bytes."""

import base64
import binascii
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb.errors import UsageError
from kb.model.source import display_name

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_KEY_FILE_BYTES_MAX: Final = 4_096
_KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64


def new_key(path: Path) -> str:
    """Make a key pair: the private key goes to a new file that only its owner may read.

    Returns the public key. Raises UsageError if the file exists or cannot be made.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    data = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise UsageError(f"{display_name(path)} already exists; name a new file") from error
    except OSError as error:
        raise UsageError(f"{display_name(path)}: {error.strerror}") from error
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return public_of(key)


def read_key(path: Path) -> "Ed25519PrivateKey":
    """The private key in a file. Raises UsageError if there is none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        with open(path, "rb") as file:
            key = load_pem_private_key(file.read(_KEY_FILE_BYTES_MAX), password=None)
    except OSError as error:
        raise UsageError(f"{display_name(path)}: {error.strerror}") from error
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{display_name(path)} holds no key; `kb pack keygen` makes one")
    return key


def public_of(key: "Ed25519PrivateKey") -> str:
    """The public half of a key."""
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def key_bytes(text: str) -> bytes:
    """The bytes of a public key in base64. Raises ValueError if it is not one."""
    return _decoded(text, _KEY_BYTES)


def is_signed(key: str, signature: str, message: bytes) -> bool:
    """Whether this key has signed this message; False also if key or signature are not valid."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        public = Ed25519PublicKey.from_public_bytes(key_bytes(key))
        public.verify(_decoded(signature, SIGNATURE_BYTES), message)
    except (ValueError, InvalidSignature):
        return False
    return True


def _decoded(text: str, length: int) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("not base64") from error
    if len(raw) != length or base64.b64encode(raw).decode() != text:
        raise ValueError(f"not {length} bytes in base64")
    return raw
