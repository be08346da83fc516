"""A listener's socket."""

from __future__ import annotations

import socket

from dragoman.runtime.config import Listener


def bind(listener: Listener, backlog: int) -> socket.socket:
    """Bound and listening: until one of two listens, both may bind. `OSError` where the address is taken or not ours."""
    family, _, _, _, address = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)[0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock
