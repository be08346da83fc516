"""Connections that say nothing, and too many of them: no listener and no address shuts out the others, and who is established stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.dialects.rq.sockets import SocketNode
from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import LISTENERS, SOCKET_TYPES, ZMTP_LISTENERS, Daemon
from tests.runtime.peers import Client, RawPeer, Worker, round_trip_ms
from tests.waiting import wait_for

FLOOD = 80
# So that other loopback addresses stand for other machines.
ELSEWHERE = 'limits.exempt_addresses=["127.0.0.1"]'


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def silent(stack: ExitStack, broker: Daemon, listener: str, count: int, source: str = "") -> list[RawPeer]:
    return [stack.enter_context(RawPeer(broker, listener, source=source)) for _ in range(count)]


def codes(broker: Daemon) -> set[str]:
    return {line["code"] for line in broker.lines() if "code" in line}


@pytest.mark.long
@pytest.mark.parametrize("listener", LISTENERS)
def test_silent_connections_at_the_limit_shut_nobody_out(
    new_broker: NewBroker, stack: ExitStack, listener: str
) -> None:
    broker = new_broker("limits.connections_max=60", "limits.handshake_s=600").start()
    flood = silent(stack, broker, listener, FLOOD)
    assert flood[0].is_ended(), "the oldest goes first"
    with Client(broker) as client, Worker(broker, b"jobs") as worker:
        assert round_trip_ms(client, worker, b"jobs") < 5000
        with SocketNode(broker) as node:
            node.say("CLEAR ID=1 QUEUE=q PAYLOAD=x NOREPLY REQUEST")
            assert node.hear() == "ID=1 DELIVERED"
        silent(stack, broker, listener, FLOOD)
        assert round_trip_ms(client, worker, b"jobs") < 5000, "who is established stays"
    assert broker.ask("status")["connections"] <= 60
    assert codes(broker) == {"HANDSHAKE_PREEMPTED"}


def test_established_connections_leave_every_other_listener_its_share(new_broker: NewBroker, stack: ExitStack) -> None:
    broker = new_broker("limits.connections_max=60").start()
    share = 60 // (2 * len(LISTENERS))
    nodes = [stack.enter_context(SocketNode(broker)) for _ in range(32)]
    answered = [node for node in nodes if node.is_answered()]
    assert not any(stack.enter_context(SocketNode(broker)).is_answered() for _ in range(38))
    assert len(answered) == 60 - share * (len(LISTENERS) - 1)
    for listener in ZMTP_LISTENERS:
        for _ in range(share):
            stack.enter_context(RawPeer(broker, listener)).greet(SOCKET_TYPES.get(listener, b"DEALER"))
    wait_for("all to be in", lambda: broker.ask("status")["connections"] == 60)
    with RawPeer(broker, "emqp.client") as late:
        assert late.is_ended()
    assert codes(broker) == {"TOO_MANY_CONNECTIONS"}
    for node in answered:
        node.say("PING")
        assert node.hear() == "PONG", "who is established stays"


def test_silent_connections_are_ended_in_time_on_every_listener(new_broker: NewBroker, stack: ExitStack) -> None:
    broker = new_broker("limits.handshake_s=0.5").start()
    peers = [peer for listener in LISTENERS for peer in silent(stack, broker, listener, 2)]
    for peer in peers[::2]:
        peer.socket.sendall(b"P")  # may still become a request, or a greeting of 1.0
    for peer in peers:
        assert peer.is_ended()
    assert broker.wait_line("no handshake in time")["code"] == "HANDSHAKE_TIMEOUT"


def test_an_rq_source_that_has_nothing_to_ask_stays_by_answering_ping(new_broker: NewBroker, stack: ExitStack) -> None:
    broker = new_broker("limits.handshake_s=1").start()
    node, mute = stack.enter_context(SocketNode(broker)), stack.enter_context(SocketNode(broker))
    assert node.hear() == "PING"
    node.say("PONG")
    assert mute.hears_end() == b"\x05"
    node.say("CLEAR ID=1 QUEUE=q PAYLOAD=x NOREPLY REQUEST")
    assert node.hear() == "ID=1 DELIVERED"


def test_one_address_has_its_share_and_no_more(new_broker: NewBroker, stack: ExitStack) -> None:
    broker = new_broker(ELSEWHERE, "limits.address_connections_max=5").start()
    first = silent(stack, broker, "emqp.client", 5, source="127.0.0.2")
    for peer in first:
        peer.greet()
        peer.hear_text(b"READY")
    for listener in ("emqp.client", "rq", "ebus.worker"):
        (late,) = silent(stack, broker, listener, 1, source="127.0.0.2")
        assert late.is_ended()
    (other,) = silent(stack, broker, "emqp.client", 1, source="127.0.0.3")
    other.greet()
    other.hear_text(b"READY")
    for peer in silent(stack, broker, "emqp.client", 20):
        peer.greet()
        peer.hear_text(b"READY")
    first[0].say(b"REQUEST", b"kept", b"jobs", b"ack-requested", b"{}")
    first[0].hear_text(b"ACK")
    assert codes(broker) == {"TOO_MANY_FROM_ADDRESS"}
    first[1].close()
    wait_for("it to be gone", lambda: broker.ask("status")["connections"] == 25)
    (again,) = silent(stack, broker, "emqp.client", 1, source="127.0.0.2")
    again.greet()
    again.hear_text(b"READY")


def test_loopback_has_no_share_by_default(new_broker: NewBroker, stack: ExitStack) -> None:
    broker = new_broker("limits.address_connections_max=5").start()
    for peer in silent(stack, broker, "emqp.client", 20, source="127.0.0.2"):
        peer.greet()
        peer.hear_text(b"READY")
