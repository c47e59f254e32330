"""Files of keys: those of other tools, and what is no key."""

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519

from kb.errors import UsageError
from kb.knowledge.packs.keys import is_signed, new_key, public_of, read_key

PLAIN = serialization.NoEncryption()


def pem(
    key: ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey | ec.EllipticCurvePrivateKey,
) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, PLAIN)


def test_a_key_is_what_openssl_reads_and_writes(tmp_path: Path) -> None:
    """Both ways: the same file, the same public key, and signatures that both accept."""
    public = new_key(tmp_path / "own.pem")
    data = (tmp_path / "own.pem").read_bytes()
    read = serialization.load_pem_private_key(data, password=None)
    assert isinstance(read, ed25519.Ed25519PrivateKey)
    assert pem(read) == data
    assert base64.b64encode(read.public_key().public_bytes_raw()).decode() == public
    assert (tmp_path / "own.pem").stat().st_mode & 0o777 == 0o600
    foreign = ed25519.Ed25519PrivateKey.generate()
    (tmp_path / "foreign.pem").write_bytes(b"a comment\n" + pem(foreign))
    key = read_key(tmp_path / "foreign.pem")
    signature = key.sign(b"text").signature
    assert signature == foreign.sign(b"text")
    signed = public_of(key), base64.b64encode(signature).decode()
    assert is_signed(*signed, b"text")
    assert not is_signed(*signed, b"another text")


def no_keys() -> list[bytes]:
    """Empty, cut, of other kinds, locked, and with a byte too many."""
    good = ed25519.Ed25519PrivateKey.generate()
    lines = pem(good).splitlines()
    longer = base64.b64encode(base64.b64decode(lines[1]) + b"x")
    locked = good.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    return [
        b"",
        b"\xff\x00 no text",
        b"\n".join(lines[:1]),
        b"\n".join([lines[0], lines[1][:-4], lines[2]]),
        b"\n".join([lines[0], b"?" + lines[1], lines[2]]),
        b"\n".join([lines[0], longer, lines[2]]),
        pem(ed448.Ed448PrivateKey.generate()),
        pem(ec.generate_private_key(ec.SECP256R1())),
        locked,
    ]


@pytest.mark.parametrize("data", no_keys())
def test_what_is_no_key_is_refused(tmp_path: Path, data: bytes) -> None:
    """With a line that names the file, and never with another error."""
    (tmp_path / "key.pem").write_bytes(data)
    with pytest.raises(UsageError, match=r"key\.pem holds no key; `kb pack keygen` makes one"):
        read_key(tmp_path / "key.pem")


@pytest.mark.parametrize(("key", "signature"), [("", ""), ("A" * 44, "A" * 88), ("a", "b")])
def test_what_is_no_signature_has_not_signed(key: str, signature: str) -> None:
    """Whatever stands there: it is not signed, and there is no error."""
    assert not is_signed(key, signature, b"text")
    zeros = base64.b64encode(bytes(32)).decode(), base64.b64encode(bytes(64)).decode()
    assert not is_signed(*zeros, b"text")
