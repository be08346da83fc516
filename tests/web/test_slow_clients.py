"""Clients that connect and do not go on: they are ended in time, make way for others, and keep no probe from its answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import uvicorn
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.limits import WEB_CONNECTIONS_MAX, WEB_REQUESTS_MAX
from dragoman.web.connections import protocol_of
from tests.runtime.daemon import Daemon
from tests.waiting import wait_for
from tests.web.conftest import NewBroker
from tests.web.visitor import Visitor

PROBES = ("/livez", "/readyz", "/metrics")
HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF_A_FORM = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\ntoken="
WAIT_S = 30.0
ANSWER_SIZE = 64 << 20
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def page_is_up(broker: Daemon) -> bool:
    try:
        return Visitor(broker).get("/livez").status == 200
    except OSError:
        return False


def started(broker: Daemon) -> Daemon:
    broker.start()
    wait_for("the page", lambda: page_is_up(broker), 60.0)
    return broker


def connected(stack: ExitStack, broker: Daemon, count: int, words: bytes) -> list[socket.socket]:
    found = []
    for _ in range(count):
        sock = stack.enter_context(socket.create_connection(broker.place("http"), WAIT_S))
        sock.sendall(words)
        found.append(sock)
    return found


def is_ended(sock: socket.socket) -> bool:
    try:
        return sock.recv(1000) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("words", [b"", b"G", HALF_A_HEAD], ids=["silent", "one byte", "half a head"])
def test_hundreds_of_unfinished_requests_keep_no_probe_from_its_answer(
    new_broker: NewBroker, stack: ExitStack, words: bytes
) -> None:
    broker = started(new_broker("limits.handshake_s=600"))
    count = 300
    first = connected(stack, broker, count, words)
    for path in (*PROBES, "/"):
        assert Visitor(broker).get(path).status == 200
    connected(stack, broker, WEB_CONNECTIONS_MAX, words)
    for path in (*PROBES, "/"):
        assert Visitor(broker).get(path).status == 200
    assert all(is_ended(sock) for sock in first), "the oldest went first"


def test_requests_at_their_bound_leave_capacity_for_probes(new_broker: NewBroker, stack: ExitStack) -> None:
    broker = started(new_broker("limits.handshake_s=600"))
    connected(stack, broker, WEB_REQUESTS_MAX, HALF_A_FORM)

    def is_full() -> bool:
        return Visitor(broker).get("/").status == 503

    wait_for("all requests to be under way", is_full, WAIT_S)
    for path in PROBES:
        for _ in range(3):
            assert Visitor(broker).get(path).status == 200
    stack.close()
    wait_for("capacity again", lambda: Visitor(broker).get("/").status == 200, WAIT_S)


@pytest.mark.parametrize("words", [b"", HALF_A_HEAD, HALF_A_FORM], ids=["silent", "half a head", "half a form"])
def test_a_request_that_does_not_come_to_its_end_is_ended_in_time(
    new_broker: NewBroker, stack: ExitStack, words: bytes
) -> None:
    broker = started(new_broker("limits.handshake_s=2"))
    began_s = time.monotonic()
    (sock,) = connected(stack, broker, 1, words)
    sock.settimeout(0.2)
    while True:  # a byte now and then must not help it
        try:
            if words:
                sock.sendall(b"x")
            if sock.recv(1000) == b"":
                break
        except TimeoutError:
            assert time.monotonic() - began_s < WAIT_S, "the connection stays open"
        except ConnectionError:
            break
    assert time.monotonic() - began_s > 1.5


def test_a_browser_that_asks_again_on_the_same_connection_is_served(new_broker: NewBroker, stack: ExitStack) -> None:
    broker = started(new_broker("limits.handshake_s=2"))
    (sock,) = connected(stack, broker, 1, b"")
    request = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for words in (request, request[:20], request[20:], request + request):
        sock.sendall(words)
        if words != request[:20]:
            heard = b""
            while heard.count(b'{"ok":true}') < (2 if words == request + request else 1):
                data = sock.recv(4096)
                assert data, "the connection ended"
                heard += data


async def _large(scope: Scope, receive: Receive, send: Send) -> None:
    """An answer that fits in no buffer."""
    await Response(bytes(ANSWER_SIZE))(scope, receive, send)


def test_a_client_that_does_not_read_its_answer_is_cut_off() -> None:
    """The answer would else hold its request's place for ever."""
    ended = threading.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                await _large(scope, receive, send)
            finally:
                ended.set()

    config = uvicorn.Config(app, port=0, http=protocol_of(5.0, unread_s=0.2), lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        wait_for("the server", lambda: server.started, WAIT_S)
        with socket.create_connection(server.servers[0].sockets[0].getsockname(), WAIT_S) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert ended.wait(WAIT_S), "the answer is still being sent"
            wait_for("the end of the connection", lambda: _is_broken(client), WAIT_S)
    finally:
        server.should_exit = True
        thread.join(WAIT_S)


def _is_broken(client: socket.socket) -> bool:
    """Whether reading everything ends before the whole answer has come."""
    size = 0
    try:
        while data := client.recv(1 << 20):
            size += len(data)
    except ConnectionError:
        pass
    return size < ANSWER_SIZE
