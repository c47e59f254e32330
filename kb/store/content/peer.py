"""Who is at the other end of a socket in a home."""

import os
import socket
import struct


def is_same_user(peer: socket.socket) -> bool:
    """Whether the other end is a process of this user, as far as the system can tell.

    Where it tells nothing, the permissions of the folder have said so.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", credentials)
    return bool(uid == os.geteuid())
