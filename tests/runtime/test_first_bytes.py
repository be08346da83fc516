"""Openings that are not a listener's own protocol are refused on every port, and peers of ZMTP 1.0 where the operator does not want them."""

from __future__ import annotations

import socket

import pytest

from dragoman.wire.zmtp.frames import encode_message
from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import LISTENERS, SOCKET_TYPES, ZMTP_LISTENERS, Daemon
from tests.runtime.peers import VERSION, Client, Peer, RawPeer, new_id
from tests.runtime.sleds import bodies, post
from tests.waiting import wait_for
from tests.wire.test_first_bytes import HELLOS, REQUESTS
from tests.wire.zmtp.dialogue import opening

REFUSED = "peer refused by its first bytes"


def heard_until_end(peer: RawPeer) -> bytes:
    heard = b""
    try:
        while data := peer.socket.recv(65536):
            heard += data
    except ConnectionError:
        pass
    return heard


def codes(broker: Daemon, listener: str) -> set[str]:
    return {line["code"] for line in broker.lines(REFUSED) if line["listener"] == listener}


@pytest.mark.parametrize("listener", LISTENERS)
def test_a_request_with_orders_in_its_body_enqueues_nothing_and_stops_nothing(common: Daemon, listener: str) -> None:
    with Client(common) as client:
        for body in bodies(listener):
            with RawPeer(common, listener) as page:
                page.socket.sendall(post(body))
                heard_until_end(page)
            with RawPeer(common, listener) as page:  # its head alone is not answered by reading on, either
                page.socket.sendall(post(body)[: -len(body)])
                page.socket.sendall(body)
                heard_until_end(page)
        client.keep(b"others")
    assert [queue["queue"] for queue in common.ask("queues")["queues"] if "stolen" in queue["queue"]] == []
    queued = {queue["queue"]: queue for queue in common.ask("queues")["queues"]}
    assert "pingpong" not in queued or queued["pingpong"]["waiting"] == 0
    assert common.process.is_running()

    def is_logged() -> bool:
        with RawPeer(common, listener) as page:  # again: there are so many lines for all faults in one second
            page.socket.sendall(REQUESTS[0])
            heard_until_end(page)
        return "HTTP_NOT_SPOKEN" in codes(common, listener)

    wait_for("its line in the log", is_logged)


@pytest.mark.parametrize("listener", LISTENERS)
def test_every_request_is_answered_with_a_plain_400_and_the_end(common: Daemon, listener: str) -> None:
    for request in REQUESTS:
        with RawPeer(common, listener) as peer:
            peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in request[:4]:
                peer.socket.sendall(bytes([byte]))
            peer.socket.sendall(request[4:])
            heard = heard_until_end(peer)
        signature = b"" if listener == "rq" else opening(30, b"DEALER")[:10]
        assert heard.startswith(signature + b"HTTP/1.1 400 "), request
        assert heard.endswith(b"\r\n\r\nHTTP is not spoken on this port.\n"), request


@pytest.mark.parametrize("listener", LISTENERS)
def test_a_tls_hello_ends_the_connection_without_an_answer(common: Daemon, listener: str) -> None:
    for hello in HELLOS:
        with RawPeer(common, listener) as peer:
            peer.socket.sendall(hello)
            heard = heard_until_end(peer)
        assert heard == (b"" if listener == "rq" else opening(30, b"DEALER")[:10])
        with RawPeer(common, listener) as peer:
            peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in hello[:3]:
                try:
                    peer.socket.sendall(bytes([byte]))
                except ConnectionError:
                    break
            heard_until_end(peer)

    def is_logged() -> bool:
        with RawPeer(common, listener) as peer:  # again: there are so many lines for all faults in one second
            peer.socket.sendall(HELLOS[0])
            heard_until_end(peer)
        return "TLS_NOT_SPOKEN" in codes(common, listener)

    wait_for("its line in the log", is_logged)


@pytest.mark.long
@pytest.mark.parametrize("listener", [name for name in ZMTP_LISTENERS if not name.startswith("scale0.")])
def test_a_peer_of_1_0_is_refused_with_one_line_that_names_the_setting(new_broker: NewBroker, listener: str) -> None:
    broker = new_broker(listen={listener: "tcp://127.0.0.1:0", "emqp.client": "tcp://127.0.0.1:0"}).start()
    for _ in range(5):
        with RawPeer(broker, listener) as old:
            old.socket.sendall(opening(1, b"", b"old-timer"))
            assert old.is_ended()
    with Client(broker) as client:
        client.keep(b"others")
    (line,) = broker.lines(REFUSED)
    assert line["code"] == "LEGACY_GREETING_OFF"
    assert line["advice"].endswith(f"add {listener} to security.legacy_greetings")


@pytest.mark.parametrize("version", [2, 30, 31])
@pytest.mark.parametrize("listener", ZMTP_LISTENERS)
def test_newer_peers_are_taken_everywhere(common: Daemon, listener: str, version: int) -> None:
    with RawPeer(common, listener) as peer:
        peer.socket.sendall(opening(version, SOCKET_TYPES.get(listener, b"DEALER"), b"newer"))
        # The greeting of an old one has 12 bytes and an identity frame, that of a new one 64 and READY.
        heard = b""
        while len(heard) < (14 if version == 2 else 64 + 8):
            data = peer.socket.recv(4096)
            assert data, "the connection ended"
            heard += data


def test_scale0s_old_programs_are_served_with_1_0_by_default(broker: Daemon) -> None:
    with RawPeer(broker, "scale0.worker") as old:
        old.socket.sendall(opening(1, b"", b"old-timer"))
        old.socket.sendall(encode_message([b"PING", b"tcp://w:1 mail 1700000000"], is_v1=True))
        assert b"PONG" in old.hear_text(b"PONG")


def test_the_setting_takes_1_0_elsewhere_and_off_where_it_was_on(new_broker: NewBroker) -> None:
    broker = new_broker('security.legacy_greetings=["emqp.client"]').start()
    with RawPeer(broker, "emqp.client") as old:
        old.socket.sendall(opening(1, b"", b"old-timer"))
        frames = [b"", VERSION, b"REQUEST", new_id(), b"old-jobs", b"ack-requested", b"{}"]
        old.socket.sendall(encode_message(frames, is_v1=True))
        old.hear_text(b"ACK")
    with RawPeer(broker, "scale0.worker") as old:
        old.socket.sendall(opening(1, b"", b"old-timer"))
        assert old.is_ended()
    for text in (b"GET / HTTP/1.1\r\n\r\n", post(bodies("emqp.client")[0])):
        with RawPeer(broker, "emqp.client") as page:
            page.socket.sendall(text)
            assert page.is_ended()
    assert [queue["queue"] for queue in broker.ask("queues")["queues"]] == ["old-jobs"]


def test_an_admins_disconnect_is_answered_with_the_setting_that_would_allow_it(broker: Daemon) -> None:
    with Peer(broker, "emqp.admin") as admin:
        message_id = new_id()
        admin.say(b"DISCONNECT", message_id)
        word, _, value, answered_id = admin.hear()
        assert (word, answered_id) == (b"REPLY", message_id)
        assert b"emqp.remote_stop" in value
    with Client(broker) as client:
        client.keep(b"still-here")
    assert broker.process.is_running()
