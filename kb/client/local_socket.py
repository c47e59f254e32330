"""An operation by the server that works in a home on this machine, over its socket there.

Only what starts quickly is imported here: whoever asks this way saves the time that loading an
index takes. Nothing is raised and nothing said, for the caller can search by itself.
"""

import os
import socket
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from kb.operations.operation import Operation
from kb.store.content.peer import is_same_user

_WAIT_S: Final = 1.5
_ANSWER_BYTES_MAX: Final = 64 << 20
_HEAD_BYTES_MAX: Final = 16 << 10
_BLOCK: Final = 1 << 18


def answer_by_socket(path: Path, operation: Operation, request: Struct, fingerprint: str) -> Any:
    """What the server at a socket answers; None where none answers well within 1.5 seconds.

    None, too, where it is of another user, or of another home, kb or settings than `fingerprint`.
    """
    body = msgspec.json.encode({**msgspec.to_builtins(request), "fingerprint": fingerprint})
    end_s = time.monotonic() + _WAIT_S
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(_WAIT_S)
            peer.connect(os.fspath(path))
            if not is_same_user(peer):
                return None
            peer.sendall(_request(operation, body))
            answer = _body(_received(peer, end_s))
            return None if answer is None else operation.decoded(answer)
    except (OSError, ValueError):
        return None


def _request(operation: Operation, body: bytes) -> bytes:
    head = (
        f"POST {operation.path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


def _received(peer: socket.socket, end_s: float) -> bytes:
    """Everything up to the end of the connection. Raises ValueError where that is too much."""
    parts: list[bytes] = []
    total = 0
    while True:
        # Counted to the end of the answer: a server that sends now and then is too slow, too.
        peer.settimeout(max(end_s - time.monotonic(), 0.001))
        part = peer.recv(_BLOCK)
        if not part:
            return b"".join(parts)
        total += len(part)
        if total > _ANSWER_BYTES_MAX:
            raise ValueError("the answer is too long")
        parts.append(part)


def _body(answer: bytes) -> bytes | None:
    """The body of a whole answer that is good; None of any other."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 ") or len(head) > _HEAD_BYTES_MAX:
        return None
    lengths = [
        line.partition(b":")[2].strip()
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    if lengths != [str(len(body)).encode()]:
        return None
    return body
