"""The far ends: a client and a worker as our own programs play them, against a broker without a process."""

from __future__ import annotations

from dragoman.dialects.endpoint import ANSWERED, FAILED, REFUSED, CallOptions, EndpointSetup, MessageIds
from dragoman.dialects.scale0.endpoints import Scale0ClientEndpoint, Scale0WorkerEndpoint
from dragoman.model.enums import BY_OPERATOR, DRAINING, SCALE0
from tests.core.harness import InMemoryBroker
from tests.dialects.scale0.in_memory import configure, new_client, pinged

QUEUES = [(10, b"mail"), (5, b"thumbs")]


class Bench:
    """One endpoint and the broker's session it is connected to."""

    def __init__(
        self, broker: InMemoryBroker, endpoint: Scale0ClientEndpoint | Scale0WorkerEndpoint, listener: str
    ) -> None:
        self.broker = broker
        self.endpoint = endpoint
        self.session = broker.dialects.session(listener)
        self.session.remote = "127.0.0.1:50000"
        self.session.start()
        self.now_s = 1000.0
        self.said: list[tuple[int, bytes, bytes]] = []
        self.jobs: list[tuple[bytes, float, bytes]] = []
        self.is_deaf = False  # the broker's words do not come through
        self.session.receive(endpoint.opening())
        self.exchange()

    def exchange(self) -> None:
        """Until both have said everything."""
        while True:
            self.broker.commit()
            data = b"" if self.is_deaf else self.session.take_all()
            if data:
                if isinstance(self.endpoint, Scale0ClientEndpoint):
                    self.said += self.endpoint.receive(data)
                else:
                    self.jobs += self.endpoint.receive(data)
            out = self.endpoint.data_to_send()
            if out:
                self.session.receive(out)
            if not data and not out:
                return

    def beat(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s += 0.25
            self.broker.pass_time(0.25)
            self.endpoint.beat(self.now_s)
            self.exchange()


def setup(identity: bytes, is_alternate: bool, wall_s: float = 0.0) -> EndpointSetup:
    made = EndpointSetup(identity, MessageIds(b"x" * 24))
    made.is_alternate, made.wall_s = is_alternate, wall_s
    return made


def worker_bench(broker: InMemoryBroker, slots: int = 1, seeks: bool = False) -> tuple[Bench, Scale0WorkerEndpoint]:
    wall_s = broker.now_ns / 1e9 - 1000.0
    endpoint = Scale0WorkerEndpoint(setup(b"w1", seeks, wall_s))
    endpoint.serve(QUEUES, slots)
    return Bench(broker, endpoint, "scale0.worker"), endpoint


def client_bench(broker: InMemoryBroker, seeks: bool = False) -> tuple[Bench, Scale0ClientEndpoint]:
    endpoint = Scale0ClientEndpoint(setup(b"c1", seeks))
    return Bench(broker, endpoint, "scale0.client"), endpoint


def test_a_worker_endpoint_negotiates_enters_the_line_and_answers() -> None:
    broker = InMemoryBroker()
    bench, endpoint = worker_bench(broker)
    assert endpoint.is_ready
    client = new_client(broker)
    client.task("a", "thumbs", b"work")
    bench.exchange()
    ((request_id, timeout_s, body),) = bench.jobs
    assert (timeout_s, body) == (0.0, b"work")
    endpoint.reply(request_id, b"value")
    endpoint.ready(1)
    bench.exchange()
    assert client.results() == [("a", b"value")]
    client.task("b")
    bench.exchange()
    assert len(bench.jobs) == 2


def test_a_worker_endpoint_takes_as_many_jobs_as_it_has_slots_and_no_more() -> None:
    broker = InMemoryBroker()
    bench, _ = worker_bench(broker, slots=3)
    client = new_client(broker)
    for number in range(5):
        client.task(number)
    bench.exchange()
    assert len(bench.jobs) == 3
    bench.beat(20)
    assert len(bench.jobs) == 3
    assert broker.facts("worker_left") == []


def test_an_idle_worker_endpoint_stays_in_the_line() -> None:
    broker = InMemoryBroker()
    bench, _ = worker_bench(broker)
    bench.beat(60)
    assert broker.facts("worker_left") == []
    new_client(broker).task(1)
    bench.exchange()
    assert len(bench.jobs) == 1


def test_a_worker_endpoint_that_leaves_gets_nothing_new_and_answers_what_it_has() -> None:
    broker = InMemoryBroker()
    bench, endpoint = worker_bench(broker, slots=2)
    client = new_client(broker)
    client.task("a")
    bench.exchange()
    endpoint.goodbye()
    bench.exchange()
    client.task("b")
    bench.beat(10)
    ((request_id, _, _),) = bench.jobs
    endpoint.reply(request_id, b"value")
    bench.exchange()
    assert client.results() == [("a", b"value")]


def test_a_worker_endpoint_withholds_ping_while_pongs_come_back_slowly() -> None:
    broker = InMemoryBroker()
    bench, endpoint = worker_bench(broker)
    bench.is_deaf = True
    endpoint.is_in_line = False  # as after a task
    endpoint.ready(1)
    bench.beat(2)
    endpoint.is_in_line = False
    before = endpoint.negotiated.pings_owed
    endpoint.ready(1)
    assert endpoint.negotiated.pings_owed == before
    assert not endpoint.is_in_line
    bench.is_deaf = False
    bench.exchange()
    assert endpoint.is_in_line
    assert not endpoint.is_over


def test_a_worker_endpoint_negotiates_again_when_asked_to() -> None:
    broker = InMemoryBroker()
    bench, endpoint = worker_bench(broker)
    before = endpoint.negotiated.version
    configure(broker, b"broker\n    identity = other\n")
    bench.exchange()
    assert endpoint.negotiated.version != before
    endpoint.negotiated.version = b'"stale"'
    endpoint.is_in_line = False
    bench.session.exchange.lose(bench.session, 0)
    endpoint.ready(1)
    bench.exchange()
    new_client(broker).task(1)
    bench.exchange()
    assert len(bench.jobs) == 1


def test_sides_give_up_a_silent_broker() -> None:
    for bench, endpoint in (worker_bench(InMemoryBroker()), client_bench(InMemoryBroker())):
        bench.is_deaf = True
        bench.beat(16)
        assert endpoint.is_over
        assert endpoint.problem == "the broker is silent"


def test_sides_go_where_a_draining_broker_sends_them() -> None:
    broker = InMemoryBroker()
    configure(broker, b"broker\n    peers\n        broker = tcp://h2:8081\n            client = tcp://h2:8080\n")
    worker_end, serving = worker_bench(broker)
    client_end, asking = client_bench(broker)
    broker.core.refusing = DRAINING
    broker.dialects.scale0.draining()
    worker_end.exchange()
    client_end.exchange()
    assert (serving.is_over, serving.moved_to) == (True, b"tcp://h2:8081")
    assert (asking.is_over, asking.moved_to) == (True, b"tcp://h2:8080")


def test_a_side_that_is_sent_away_to_nowhere_is_over_at_its_next_beat() -> None:
    broker = InMemoryBroker()
    bench, endpoint = client_bench(broker)
    broker.dialects.scale0.draining()
    bench.exchange()
    bench.beat(0.5)
    assert (endpoint.is_over, endpoint.moved_to) == (True, b"")


def test_a_side_that_seeks_asks_first_and_stays_where_nobody_else_serves_it() -> None:
    broker = InMemoryBroker()
    bench, endpoint = worker_bench(broker, seeks=True)
    assert endpoint.is_ready
    assert not endpoint.is_over
    configure(broker, b"broker\n    peers\n        broker = tcp://h2:8081\n")
    _, other = worker_bench(broker, seeks=True)
    assert (other.is_over, other.moved_to, other.is_ready) == (True, b"tcp://h2:8081", False)
    assert not bench.jobs


def test_a_side_that_a_refusing_broker_turns_down_asks_once_for_another() -> None:
    broker = InMemoryBroker()
    configure(broker, b"broker\n    state = refusing\n")
    _, alone = worker_bench(broker)
    assert (alone.is_over, alone.moved_to) == (True, b"")
    configure(broker, b"broker\n    state = refusing\n    peers\n        broker = tcp://h2:8081\n")
    _, sent = worker_bench(broker)
    assert sent.moved_to == b"tcp://h2:8081"


def test_a_client_endpoint_hears_what_became_of_each_call() -> None:
    broker = InMemoryBroker()
    worker = pinged(broker)
    bench, endpoint = client_bench(broker)
    assert endpoint.is_ready
    for call_id in (b"one", b"two"):
        endpoint.request(call_id, CallOptions(b"mail"), b"work")
    bench.exchange()
    ((given, _),) = worker.tasks()
    worker.reply(given, b"value")
    (waiting,) = broker.core.open_messages(SCALE0)
    broker.core.cancel(waiting, BY_OPERATOR)
    bench.exchange()
    assert bench.said == [(ANSWERED, b"one", b"value"), (FAILED, b"two", b"BY_OPERATOR")]


def test_a_client_endpoint_tells_a_refusal_from_a_failure() -> None:
    broker = InMemoryBroker()
    bench, endpoint = client_bench(broker)
    endpoint.request(b"long", CallOptions(b"q" * 300), b"")
    bench.exchange()
    broker.core.refusing = 2
    endpoint.request(b"full", CallOptions(b"mail"), b"")
    bench.exchange()
    assert {(what, call_id, value.partition(b":")[0]) for what, call_id, value in bench.said} == {
        (REFUSED, b"long", b"TOO_LONG"),
        (REFUSED, b"full", b"JOURNAL_FULL"),
    }
