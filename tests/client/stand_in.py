"""A broker of nothing but a libzmq ROUTER: it says exactly what a test makes it say."""

from __future__ import annotations

import asyncio

import zmq

DEADLINE_MS = 60_000


class StandIn:
    """Bound at a port that it keeps over `restart`."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], port: int = 0) -> None:
        self._context = context
        self.router = self._bind(port)
        self.port = int(self.router.getsockopt_string(zmq.LAST_ENDPOINT).rsplit(":", 1)[1])

    def _bind(self, port: int) -> zmq.Socket[bytes]:
        router: zmq.Socket[bytes] = self._context.socket(zmq.ROUTER)
        router.setsockopt(zmq.LINGER, 0)
        router.setsockopt(zmq.RCVTIMEO, DEADLINE_MS)
        router.setsockopt(zmq.ROUTER_HANDOVER, 1)
        try:
            router.bind(f"tcp://127.0.0.1:{port or '*'}")
        except zmq.ZMQError:
            router.close()
            raise
        return router

    @property
    def url(self) -> str:
        return f"emqp://127.0.0.1:{self.port}"

    async def hear(self) -> list[bytes]:
        """The next message, with its sender in front."""
        return await asyncio.to_thread(self.router.recv_multipart)

    def say(self, to: bytes, *frames: bytes) -> None:
        self.router.send_multipart([to, b"", b"eMQP/1.0", *frames])

    def drop(self) -> None:
        """Cut every connection, and listen no more."""
        self.router.close(linger=0)

    async def restart(self) -> None:
        """Listen again; libzmq frees the port a little after `close`."""
        async with asyncio.timeout(DEADLINE_MS / 1000):
            while True:
                try:
                    self.router = self._bind(self.port)
                    return
                except zmq.ZMQError:
                    await asyncio.sleep(0.01)
