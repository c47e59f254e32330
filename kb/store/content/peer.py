"""The user at the other end of a Unix socket."""

import os
import socket
import struct


def is_same_user(peer: socket.socket) -> bool:
    """Whether the peer process runs as this user.

    True on systems that do not tell: there the permissions of the socket's folder decide.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", credentials)
    return bool(uid == os.geteuid())
