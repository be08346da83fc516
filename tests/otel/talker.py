"""A server that says what it was told to say, piece after piece, whoever asks for whatever: no collector, but it may stand at its door."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from dragoman.cli.ports import lasting_port

PAUSE_S = 0.02  # between two pieces


class Talker:
    """One answer for each request, then silence."""

    def __init__(self, answers: Iterable[Iterable[bytes]]) -> None:
        self.requests = 0
        self._answers = iter(answers)
        self._is_over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", lasting_port()))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while not self._is_over.is_set():
                peer, _ = self._listener.accept()
                with peer, suppress(OSError):
                    while heard := peer.recv(1 << 20):
                        if b"POST " in heard:
                            self.requests += 1
                            self._answer(peer)

    def _answer(self, peer: socket.socket) -> None:
        for piece in next(self._answers, ()):
            peer.sendall(piece)
            if self._is_over.wait(PAUSE_S):
                return


@contextmanager
def talking(*answers: Iterable[bytes]) -> Iterator[Talker]:
    made = Talker(answers)
    try:
        yield made
    finally:
        made.stop()
