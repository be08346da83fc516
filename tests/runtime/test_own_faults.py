"""A fault of the broker's own: one that met a peer costs the connection, one that met everybody ends the process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import uvloop

from dragoman.runtime.config import Config
from dragoman.runtime.process.home import Home
from dragoman.runtime.server import Server


class Halted:
    """Stands where the broker would."""

    def __init__(self) -> None:
        self.is_halted = False

    def halt(self) -> None:
        self.is_halted = True


def fail(*_: Any) -> None:
    raise AssertionError("this cannot be")


class FailingPeer(asyncio.Protocol):
    data_received = fail


def serve(path: Path, scene: Any) -> Server:
    async def play() -> Server:
        server = Server(Config(), Home(path), None)
        server.broker = Halted()  # type: ignore[assignment]
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(server.on_loop_fault)
        await scene(loop)
        await asyncio.sleep(0)
        return server

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(play())


def test_a_fault_in_a_tick_stops_the_broker_and_tells_its_supervisor(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def tick(loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon(fail)

    server = serve(tmp_path, tick)
    assert server.has_failed
    assert server.broker.is_halted  # type: ignore[attr-defined]
    assert server._stopping.is_set()
    assert "this cannot be" in "".join(capfd.readouterr())


def test_a_fault_while_one_peer_is_served_ends_that_connection_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def talk(loop: asyncio.AbstractEventLoop) -> None:
        listening = await loop.create_server(FailingPeer, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(b"anything")
        assert await reader.read() == b""
        writer.close()
        listening.close()

    server = serve(tmp_path, talk)
    assert not server.has_failed
    assert not server._stopping.is_set()
    assert "this cannot be" in "".join(capfd.readouterr())
