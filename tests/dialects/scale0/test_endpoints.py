"""The far ends: a client and a worker as our own programs play them, against a broker without a process."""

from __future__ import annotations

from dragoman.dialects.endpoint import ANSWERED, FAILED, REFUSED, CallOptions
from dragoman.dialects.scale0.endpoints import Scale0ClientEndpoint, Scale0WorkerEndpoint
from dragoman.limits import MESSAGE_SIZE_MAX
from dragoman.model.words import BY_OPERATOR, DRAINING, SCALE0
from tests.core.harness import House
from tests.dialects.scale0.stall import client, configure, pinged

QUEUES = [(10, b"mail"), (5, b"thumbs")]


class Bench:
    """One endpoint and the broker's session it is connected to."""

    def __init__(self, house: House, endpoint: Scale0ClientEndpoint | Scale0WorkerEndpoint, listener: str) -> None:
        self.house = house
        self.endpoint = endpoint
        self.session = house.dialects.session(listener)
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
            self.house.commit()
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
            self.house.pass_time(0.25)
            self.endpoint.beat(self.now_s)
            self.exchange()


def worker_bench(house: House, slots: int = 1, seeks: bool = False) -> tuple[Bench, Scale0WorkerEndpoint]:
    wall_s = house.now_ns / 1e9 - 1000.0
    endpoint = Scale0WorkerEndpoint(b"w1", MESSAGE_SIZE_MAX, seeks, wall_s)
    endpoint.serve(QUEUES, slots)
    return Bench(house, endpoint, "scale0.worker"), endpoint


def client_bench(house: House, seeks: bool = False) -> tuple[Bench, Scale0ClientEndpoint]:
    endpoint = Scale0ClientEndpoint(b"c1", MESSAGE_SIZE_MAX, seeks)
    return Bench(house, endpoint, "scale0.client"), endpoint


def test_a_worker_endpoint_negotiates_enters_the_line_and_answers() -> None:
    house = House()
    bench, endpoint = worker_bench(house)
    assert endpoint.is_ready
    master = client(house)
    master.task("a", "thumbs", b"work")
    bench.exchange()
    ((request_id, timeout_s, body),) = bench.jobs
    assert (timeout_s, body) == (0.0, b"work")
    endpoint.reply(request_id, b"value")
    endpoint.ready(1)
    bench.exchange()
    assert master.results() == [("a", b"value")]
    master.task("b")
    bench.exchange()
    assert len(bench.jobs) == 2


def test_a_worker_endpoint_takes_as_many_jobs_as_it_has_slots_and_no_more() -> None:
    house = House()
    bench, _ = worker_bench(house, slots=3)
    master = client(house)
    for number in range(5):
        master.task(number)
    bench.exchange()
    assert len(bench.jobs) == 3
    bench.beat(20)
    assert len(bench.jobs) == 3
    assert house.facts("worker_left") == []


def test_an_idle_worker_endpoint_stays_in_the_line() -> None:
    house = House()
    bench, _ = worker_bench(house)
    bench.beat(60)
    assert house.facts("worker_left") == []
    client(house).task(1)
    bench.exchange()
    assert len(bench.jobs) == 1


def test_a_worker_endpoint_that_leaves_gets_nothing_new_and_answers_what_it_has() -> None:
    house = House()
    bench, endpoint = worker_bench(house, slots=2)
    master = client(house)
    master.task("a")
    bench.exchange()
    endpoint.goodbye()
    bench.exchange()
    master.task("b")
    bench.beat(10)
    ((request_id, _, _),) = bench.jobs
    endpoint.reply(request_id, b"value")
    bench.exchange()
    assert master.results() == [("a", b"value")]


def test_a_worker_endpoint_withholds_ping_while_pongs_come_back_slowly() -> None:
    house = House()
    bench, endpoint = worker_bench(house)
    bench.is_deaf = True
    endpoint.is_in_line = False  # as after a task
    endpoint.ready(1)
    bench.beat(2)
    endpoint.is_in_line = False
    before = endpoint.accord.pings_owed
    endpoint.ready(1)
    assert endpoint.accord.pings_owed == before
    assert not endpoint.is_in_line
    bench.is_deaf = False
    bench.exchange()
    assert endpoint.is_in_line
    assert not endpoint.is_over


def test_a_worker_endpoint_negotiates_again_when_told_to() -> None:
    house = House()
    bench, endpoint = worker_bench(house)
    before = endpoint.accord.version
    configure(house, b"broker\n    identity = other\n")
    bench.exchange()
    assert endpoint.accord.version != before
    endpoint.accord.version = b'"stale"'
    endpoint.is_in_line = False
    bench.session.exchange.lose(bench.session, 0)
    endpoint.ready(1)
    bench.exchange()
    client(house).task(1)
    bench.exchange()
    assert len(bench.jobs) == 1


def test_sides_give_up_a_silent_broker() -> None:
    for bench, endpoint in (worker_bench(House()), client_bench(House())):
        bench.is_deaf = True
        bench.beat(16)
        assert endpoint.is_over
        assert endpoint.problem == "the broker is silent"


def test_sides_go_where_a_draining_broker_sends_them() -> None:
    house = House()
    configure(house, b"broker\n    peers\n        broker = tcp://h2:8081\n            client = tcp://h2:8080\n")
    worker_end, serving = worker_bench(house)
    client_end, asking = client_bench(house)
    house.core.refusing = DRAINING
    house.dialects.scale0.draining()
    worker_end.exchange()
    client_end.exchange()
    assert (serving.is_over, serving.moved_to) == (True, b"tcp://h2:8081")
    assert (asking.is_over, asking.moved_to) == (True, b"tcp://h2:8080")


def test_a_side_that_is_sent_away_to_nowhere_is_over_at_its_next_beat() -> None:
    house = House()
    bench, endpoint = client_bench(house)
    house.dialects.scale0.draining()
    bench.exchange()
    bench.beat(0.5)
    assert (endpoint.is_over, endpoint.moved_to) == (True, b"")


def test_a_side_that_seeks_asks_first_and_stays_where_nobody_else_serves_it() -> None:
    house = House()
    bench, endpoint = worker_bench(house, seeks=True)
    assert endpoint.is_ready
    assert not endpoint.is_over
    configure(house, b"broker\n    peers\n        broker = tcp://h2:8081\n")
    _, other = worker_bench(house, seeks=True)
    assert (other.is_over, other.moved_to, other.is_ready) == (True, b"tcp://h2:8081", False)
    assert not bench.jobs


def test_a_side_that_a_refusing_broker_turns_down_asks_once_for_another() -> None:
    house = House()
    configure(house, b"broker\n    state = refusing\n")
    _, alone = worker_bench(house)
    assert (alone.is_over, alone.moved_to) == (True, b"")
    configure(house, b"broker\n    state = refusing\n    peers\n        broker = tcp://h2:8081\n")
    _, sent = worker_bench(house)
    assert sent.moved_to == b"tcp://h2:8081"


def test_a_client_endpoint_hears_what_became_of_each_call() -> None:
    house = House()
    servant = pinged(house)
    bench, endpoint = client_bench(house)
    assert endpoint.is_ready
    for call_id in (b"one", b"two"):
        endpoint.request(call_id, CallOptions(b"mail"), b"work")
    bench.exchange()
    ((given, _),) = servant.tasks()
    servant.reply(given, b"value")
    (waiting,) = house.core.open_messages(SCALE0)
    house.core.cancel(waiting, BY_OPERATOR)
    bench.exchange()
    assert bench.said == [(ANSWERED, b"one", b"value"), (FAILED, b"two", b"BY_OPERATOR")]


def test_a_client_endpoint_tells_a_refusal_from_a_failure() -> None:
    house = House()
    bench, endpoint = client_bench(house)
    endpoint.request(b"long", CallOptions(b"q" * 300), b"")
    bench.exchange()
    house.core.refusing = 2
    endpoint.request(b"full", CallOptions(b"mail"), b"")
    bench.exchange()
    assert {(what, call_id, value.partition(b":")[0]) for what, call_id, value in bench.said} == {
        (REFUSED, b"long", b"TOO_LONG"),
        (REFUSED, b"full", b"JOURNAL_FULL"),
    }
