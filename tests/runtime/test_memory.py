"""One byte budget for the process: floods that would have filled the machine, measured, while others go on working."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest
import zmq

from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client, Peer, RawPeer, Worker, new_id, round_trip_ms
from tests.waiting import wait_for
from tests.wire.zmtp.dialogue import opening, ready

pytestmark = pytest.mark.long

MB = 1_000_000
BUDGET = 128 * MB
ALLOWED = BUDGET + 100 * MB
SETTING = f"limits.memory_max={BUDGET}"


class PeakMemory:
    """Looks at the broker's resident size all the time; the most it was."""

    def __init__(self, broker: Daemon) -> None:
        self.broker = broker
        self.most = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._is_over.wait(0.005):
            self.most = max(self.most, self.broker.memory_size())

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._is_over.set()
        self._thread.join()


def memory(broker: Daemon) -> dict[str, int]:
    found: dict[str, int] = broker.ask("status")["memory"]
    return found


@pytest.mark.parametrize("durability", ["os", "disk"])
def test_bodies_that_wait_are_on_disk_and_come_back_whole(new_broker: NewBroker, durability: str) -> None:
    broker = new_broker(SETTING, durability=durability).start()
    count = 300
    with PeakMemory(broker) as peak, Client(broker) as client:
        for number in range(count):
            client.request(b"large", b"ack-requested", b"%d " % number + b"x" * MB)
        for _ in range(count):
            client.hear_word(b"ACK", wait_s=60)
        with Client(broker) as other, Worker(broker, b"small") as worker:
            assert round_trip_ms(other, worker, b"small") < 5000
        assert memory(broker)["messages"] < BUDGET // 2
        seen = []
        with Worker(broker, b"large", slots=4) as worker:
            for _ in range(count):
                request_id, body = worker.take()
                seen.append(int(body.split()[0]))
                assert len(body) > MB
                worker.answer(request_id)
                worker.ready()
        assert seen == list(range(count)), "nothing is lost, and the order is kept"
    assert peak.most < ALLOWED, f"{peak.most // MB} MB"


def test_small_messages_that_wait_are_forty_bytes_each_beyond_their_share(new_broker: NewBroker) -> None:
    broker = new_broker("limits.memory_max=16MiB").start()
    with Client(broker) as client:
        ids = [client.request(b"small", b"", b"x" * 100) for _ in range(20_000)]
        client.keep(b"last")
        assert memory(broker)["messages"] < 8 * MB
        with Worker(broker, b"small", slots=1000) as worker:
            assert worker.serve(len(ids)) == ids


def stalled_subscriber(broker: Daemon, topic: bytes = b"news/") -> RawPeer:
    peer = RawPeer(broker, "emqp.subscribe", receive_buffer=4096)
    peer.socket.sendall(opening(30, b"SUB")[:64] + ready(b"SUB") + encode_subscription(topic))
    return peer


def encode_subscription(topic: bytes) -> bytes:
    return bytes([0, len(topic) + 1, 1]) + topic


def test_news_is_kept_once_for_all_who_do_not_read(new_broker: NewBroker) -> None:
    broker = new_broker(SETTING).start()
    with ExitStack() as stack:
        peak = stack.enter_context(PeakMemory(broker))
        for _ in range(200):
            stack.enter_context(stalled_subscriber(broker))
        reader = zmq.Context.instance().socket(zmq.SUB)
        reader.linger, reader.rcvhwm = 0, 0
        stack.callback(reader.close)
        reader.subscribe(b"news/")
        reader.connect(broker.address("emqp.subscribe"))
        publisher = stack.enter_context(Peer(broker, "emqp.publish"))
        wait_for("all subscribed", lambda: broker.ask("status")["connections"] == 202)
        wait_for("the reader", lambda: heard_hello(publisher, reader))
        for number in range(600):
            publisher.say(b"PUBLISH", new_id(), b"news/it", b"%d " % number + b"x" * 100_000)
        seen = []
        while len(seen) < 600:
            assert reader.poll(60_000), f"{len(seen)} news came"
            body = reader.recv_multipart()[1]
            if body != b"hello":
                seen.append(int(body.split()[0]))
        assert seen == list(range(600)), "one that reads loses nothing"
        found = memory(broker)
        assert found["news"] <= BUDGET // 8
        assert found["news_dropped"] > 0
        client, worker = stack.enter_context(Client(broker)), stack.enter_context(Worker(broker, b"small"))
        assert round_trip_ms(client, worker, b"small") < 5000
    assert peak.most < ALLOWED, f"{peak.most // MB} MB"


def heard_hello(publisher: Peer, reader: zmq.Socket[bytes]) -> bool:
    publisher.say(b"PUBLISH", new_id(), b"news/it", b"hello")
    return bool(reader.poll(50))


def half_sent(broker: Daemon, size: int, sent: int) -> RawPeer:
    peer = RawPeer(broker, "emqp.client")
    peer.greet()
    peer.socket.sendall(b"\x02" + size.to_bytes(8, "big") + b"x" * sent)
    return peer


def test_a_message_that_is_cut_short_and_does_not_go_on_ends_its_connection(new_broker: NewBroker) -> None:
    broker = new_broker("limits.unfinished_s=1").start()
    with half_sent(broker, 100_000, 50_000) as peer, Client(broker) as client, half_sent(broker, 100, 50) as small:
        client.keep(b"others")
        assert peer.is_ended()
        assert broker.lines("peer fault")[-1]["code"] == "MESSAGE_STALLED"
        small.socket.sendall(b"x" * 50)
        assert memory(broker)["unfinished"] < 4096


def test_without_a_disk_senders_are_paused_until_a_worker_has_taken_work(new_broker: NewBroker) -> None:
    broker = new_broker(SETTING, durability="memory").start()
    count = 300
    with PeakMemory(broker) as peak, Client(broker) as client:
        for number in range(count):
            client.request(b"large", b"reply-requested", b"%d " % number + b"x" * MB)
        paused = wait_for("the sender to be paused", lambda: memory(broker)["paused_peers"])
        assert paused[0].startswith("127.0.0.1:")
        with Worker(broker, b"large", slots=2) as worker:
            refused = taken = 0
            while taken + refused < count:
                if worker.socket.poll(20):
                    request_id, body = worker.take()
                    assert len(body) > MB
                    worker.answer(request_id)
                    worker.ready()
                    taken += 1
                while client.socket.poll(0):
                    refused += b"MEMORY_FULL" in client.hear()[2]
        assert taken > 0
        wait_for("all to be read again", lambda: memory(broker)["paused"] == 0)
    assert peak.most < ALLOWED, f"{peak.most // MB} MB"


def test_answers_for_many_who_do_not_read_are_bounded_together(new_broker: NewBroker) -> None:
    broker = new_broker(SETTING).start()
    with ExitStack() as stack:
        peak = stack.enter_context(PeakMemory(broker))
        deaf = [stack.enter_context(RawPeer(broker, "emqp.client", receive_buffer=4096)) for _ in range(100)]
        for peer in deaf:
            peer.greet()
            for _ in range(4):
                peer.say(b"REQUEST", new_id(), b"big", b"reply-requested", b"{}")
        worker = stack.enter_context(Worker(broker, b"big", slots=10))
        for _ in range(400):
            request_id, _ = worker.take()
            worker.answer(request_id, b'{"value":"%s"}' % (b"x" * MB))
            worker.ready()
        wait_for("the largest to be cut off", lambda: memory(broker)["outboxes"] <= BUDGET // 8)
        assert memory(broker)["outboxes_dropped"] > 0
        client = stack.enter_context(Client(broker))
        request_id = client.request(b"big", b"reply-requested")
        worker.serve(1)
        client.result(request_id)
    assert peak.most < ALLOWED, f"{peak.most // MB} MB"
