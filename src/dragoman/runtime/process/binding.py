"""Opens the socket of a listener."""

from __future__ import annotations

import socket

from dragoman.runtime.config import Listener


def bind(listener: Listener, backlog: int) -> socket.socket:
    """Bind and listen at once, because two processes can bind the same address until one listens. Raises `OSError` if the address is in use or
    not local."""
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
