"""What aborts the original program, said to a running broker: each input is answered, and the others notice nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dialects.rq.sockets import Bystanders, SocketNode, rq_broker
from tests.runtime.daemon import Daemon


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    # The signs of life come a hundred times faster than the original's.
    daemon = rq_broker(tmp_path_factory.mktemp("rq") / "data", "rq.ping_s=0.15", "rq.pong_s=0.15")
    daemon.start()
    yield daemon
    daemon.kill()


@pytest.fixture
def bystanders(broker: Daemon) -> Iterator[Bystanders]:
    """Before and after what the test does, everything is as ever for them."""
    others = Quiet(broker)
    others.notice_nothing()
    yield others
    others.notice_nothing()
    others.close()
    assert broker.process.is_running()
    assert broker.lines("internal fault") == []


class Quiet(Bystanders):
    """Bystanders whose nodes answer PING; they hear nothing else that is not theirs."""

    def __init__(self, broker: Daemon) -> None:
        super().__init__(broker)
        self.worker, self.client = Patient(self.worker), Patient(self.client)


class Patient(SocketNode):
    """A node that answers PING and passes over PONG."""

    def __init__(self, node: SocketNode | Daemon) -> None:
        if isinstance(node, SocketNode):
            self.socket, self.unheard, self.queue_id = node.socket, node.unheard, node.queue_id
        else:
            super().__init__(node)

    def hear(self, wait_s: float = 15.0) -> str:
        while (heard := super().hear(wait_s)) in ("PING", "PONG"):
            if heard == "PING":
                self.say("PONG")
        return heard


def consumer(broker: Daemon, queue: str) -> Patient:
    node = Patient(broker)
    node.say(f"CLEAR QUEUE={queue} MAX=1 CONSUME")
    node.hear_consuming(queue)
    return node


def test_a_broadcast_reaches_the_consumers(broker: Daemon, bystanders: Bystanders) -> None:
    with consumer(broker, "broadcast") as worker, Patient(broker) as client:
        client.say("CLEAR PAYLOAD=all QUEUE=broadcast BROADCAST")
        assert worker.hear() == f"QUEUEID={worker.queue_id} PAYLOAD=all BROADCAST"


@pytest.mark.parametrize("is_by_id", [False, True])
def test_cancel_queue_ends_the_consumption(broker: Daemon, bystanders: Bystanders, is_by_id: bool) -> None:
    with consumer(broker, "cancel") as worker, Patient(broker) as client:
        name = f"QUEUEID={worker.queue_id}" if is_by_id else "QUEUE=cancel"
        worker.say(f"CLEAR {name} CANCEL_QUEUE PING")
        client.say("CLEAR ID=5 QUEUE=cancel PAYLOAD=r REQUEST")
        with consumer(broker, "cancel") as other:
            assert other.hear() == f"QUEUEID={other.queue_id} PAYLOAD=r ID=0 REQUEST"
            other.say("CLEAR ID=0 PAYLOAD=ok REPLY")
            assert client.hear() == "ID=5 DELIVERED"
            assert client.hear() == "ID=5 PAYLOAD=ok REPLY"


def test_timeout_passes_and_is_sent_as_undelivered(broker: Daemon, bystanders: Bystanders) -> None:
    with Patient(broker) as client:
        client.say("CLEAR ID=5 QUEUE=nobody PAYLOAD=r TIMEOUT=1 REQUEST")
        assert client.hear() == "ID=5 UNDELIVERED"


def test_reply_without_delivered_is_both(broker: Daemon, bystanders: Bystanders) -> None:
    with consumer(broker, "hasty") as worker, Patient(broker) as client:
        client.say("CLEAR ID=5 QUEUE=hasty PAYLOAD=r REQUEST")
        assert worker.hear() == f"QUEUEID={worker.queue_id} PAYLOAD=r ID=0 REQUEST"
        worker.say("CLEAR ID=0 PAYLOAD=ok REPLY")
        assert client.hear() == "ID=5 DELIVERED"
        assert client.hear() == "ID=5 PAYLOAD=ok REPLY"


def test_of_two_payloads_without_clear_the_last_one_wins(broker: Daemon, bystanders: Bystanders) -> None:
    with consumer(broker, "twice") as worker, Patient(broker) as client:
        client.say("CLEAR ID=5 QUEUE=twice PAYLOAD=first PAYLOAD=second REQUEST")
        assert worker.hear() == f"QUEUEID={worker.queue_id} PAYLOAD=second ID=0 REQUEST"


def test_an_empty_payload_is_legal(broker: Daemon, bystanders: Bystanders) -> None:
    with consumer(broker, "empty") as worker, Patient(broker) as client:
        client.say("CLEAR ID=5 QUEUE=empty PAYLOAD= REQUEST")
        assert worker.hear() == f"QUEUEID={worker.queue_id} PAYLOAD= ID=0 REQUEST"


def test_a_queueid_that_was_never_given_is_undelivered(broker: Daemon, bystanders: Bystanders) -> None:
    with Patient(broker) as client:
        client.say("CLEAR ID=1 QUEUEID=65535 PAYLOAD=byid REQUEST")
        assert client.hear() == "ID=1 UNDELIVERED"


def test_ids_from_two_to_the_31_are_legal(broker: Daemon, bystanders: Bystanders) -> None:
    with consumer(broker, "large") as worker, Patient(broker) as client:
        client.say("CLEAR ID=2147483649 QUEUE=large PAYLOAD=r REQUEST")
        assert worker.hear() == f"QUEUEID={worker.queue_id} PAYLOAD=r ID=0 REQUEST"
        worker.say("CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=z REPLY")
        assert client.hear() == "ID=2147483649 DELIVERED"
        assert client.hear() == "ID=2147483649 PAYLOAD=z REPLY"


def test_the_delivered_of_a_request_without_a_reply_settles_it(broker: Daemon, bystanders: Bystanders) -> None:
    with consumer(broker, "fire") as worker, Patient(broker) as client:
        for number in range(2):
            client.say(f"CLEAR ID={number} QUEUE=fire PAYLOAD=forget NOREPLY REQUEST")
            assert client.hear() == f"ID={number} DELIVERED"
            assert worker.hear() == f"QUEUEID={worker.queue_id} PAYLOAD=forget NOREPLY ID=0 REQUEST"
            worker.say("CLEAR ID=0 DELIVERED")


def test_exclusive_over_a_normal_consumer_waits(broker: Daemon, bystanders: Bystanders) -> None:
    with consumer(broker, "alone") as first, Patient(broker) as second, Patient(broker) as client:
        second.say("CLEAR EXCLUSIVE QUEUE=alone MAX=1 PRIORITY=20 CONSUME")
        client.say("CLEAR ID=1 QUEUE=alone PAYLOAD=r REQUEST")
        assert first.hear() == f"QUEUEID={first.queue_id} PAYLOAD=r ID=0 REQUEST"
        first.close()
        second.hear_consuming("alone")
        assert second.hear() == f"QUEUEID={second.queue_id} PAYLOAD=r ID=0 REQUEST"


def test_a_pong_after_the_idle_time_makes_the_node_active_again(broker: Daemon, bystanders: Bystanders) -> None:
    with SocketNode(broker) as idle, Patient(broker) as client:
        idle.say("CLEAR QUEUE=idle MAX=1 CONSUME")
        idle.hear_consuming("idle")
        assert idle.hear() == "PING"
        # Its second silence is over when the other one's request for it has timed out at the earliest.
        client.say("CLEAR ID=1 QUEUE=nobody PAYLOAD=r TIMEOUT=1 REQUEST")
        assert client.hear() == "ID=1 UNDELIVERED"
        client.say("CLEAR ID=2 QUEUE=idle PAYLOAD=r TIMEOUT=1 REQUEST")
        assert client.hear() == "ID=2 UNDELIVERED"
        client.say("CLEAR ID=3 QUEUE=idle PAYLOAD=r REQUEST")
        idle.say("PONG")
        assert idle.hear() == f"QUEUEID={idle.queue_id} PAYLOAD=r ID=0 REQUEST"


def test_a_reply_without_a_payload_is_an_empty_reply(broker: Daemon, bystanders: Bystanders) -> None:
    with consumer(broker, "wordless") as worker, Patient(broker) as client:
        client.say("CLEAR ID=5 QUEUE=wordless PAYLOAD=r REQUEST")
        assert worker.hear() == f"QUEUEID={worker.queue_id} PAYLOAD=r ID=0 REQUEST"
        worker.say("CLEAR ID=0 REPLY")
        assert client.hear() == "ID=5 DELIVERED"
        assert client.hear() == "ID=5 PAYLOAD= REPLY"


def test_a_request_without_an_id_costs_its_sender_the_connection(broker: Daemon, bystanders: Bystanders) -> None:
    with SocketNode(broker) as client:
        client.say("CLEAR QUEUE=q PAYLOAD=r REQUEST")
        assert client.hears_end() in (b"", b"\x05")


def test_a_payload_over_the_limit_costs_its_sender_the_connection(broker: Daemon, bystanders: Bystanders) -> None:
    with SocketNode(broker) as client:
        client.give(b"\x01\x80\0\0\0\x01\xa0\x01q\xe0\xff\xff\xff\xffxxxx")
        assert client.hears_end() in (b"", b"\x05")
    assert broker.wait_line("peer fault")["code"] in ("PAYLOAD_TOO_LARGE", "OPERATION_WITHOUT_ID")


@pytest.mark.parametrize(
    "junk", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00", bytes(range(256)), b"\xff" * 5000]
)
def test_what_is_no_risp_at_all_harms_nobody_else(broker: Daemon, bystanders: Bystanders, junk: bytes) -> None:
    with SocketNode(broker) as stranger:
        stranger.give(junk)
        bystanders.notice_nothing()
