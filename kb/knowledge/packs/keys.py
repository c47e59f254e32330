"""Ed25519 keys that sign archives and registries. As text a key is base64 of its 32 bytes."""

import base64
import binascii
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb.errors import UsageError
from kb.model.source import display_name

if TYPE_CHECKING:
    from nacl.signing import SigningKey

_KEY_FILE_BYTES_MAX: Final = 4_096
_KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
_PEM_FIRST: Final = b"-----BEGIN PRIVATE KEY-----"
_PEM_LAST: Final = b"-----END PRIVATE KEY-----"
# What PKCS#8 has before the 32 bytes of an Ed25519 key (RFC 8410, section 7).
_PKCS8: Final = bytes.fromhex("302e020100300506032b657004220420")


def new_key(path: Path) -> str:
    """Make a key pair: the private key goes to a new file that only its owner may read.

    Returns the public key. Raises UsageError if the file exists or cannot be made.
    """
    from nacl.signing import SigningKey

    key = SigningKey.generate()
    data = b"%s\n%s\n%s\n" % (_PEM_FIRST, base64.b64encode(_PKCS8 + bytes(key)), _PEM_LAST)
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


def read_key(path: Path) -> "SigningKey":
    """The private key in a file. Raises UsageError if there is none."""
    from nacl.signing import SigningKey

    try:
        with open(path, "rb") as file:
            data = file.read(_KEY_FILE_BYTES_MAX)
    except OSError as error:
        raise UsageError(f"{display_name(path)}: {error.strerror}") from error
    secret = _secret_of(data)
    if secret is None:
        raise UsageError(f"{display_name(path)} holds no key; `kb pack keygen` makes one")
    return SigningKey(secret)


def _secret_of(pem: bytes) -> bytes | None:
    """The 32 bytes of an Ed25519 key in PEM; None if there is no such key."""
    inside = pem.partition(_PEM_FIRST)[2].partition(_PEM_LAST)[0]
    try:
        der = base64.b64decode(b"".join(inside.split()), validate=True)
    except binascii.Error:
        return None
    is_key = der.startswith(_PKCS8) and len(der) == len(_PKCS8) + _KEY_BYTES
    return der[len(_PKCS8) :] if is_key else None


def public_of(key: "SigningKey") -> str:
    """The public half of a key."""
    return base64.b64encode(bytes(key.verify_key)).decode()


def key_bytes(text: str) -> bytes:
    """The bytes of a public key in base64. Raises ValueError if it is not one."""
    return _decoded(text, _KEY_BYTES)


def is_signed(key: str, signature: str, message: bytes) -> bool:
    """Whether this key has signed this message; False also if key or signature are not valid."""
    from nacl.exceptions import BadSignatureError
    from nacl.signing import VerifyKey

    try:
        VerifyKey(key_bytes(key)).verify(message, _decoded(signature, SIGNATURE_BYTES))
    except (ValueError, BadSignatureError):
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
