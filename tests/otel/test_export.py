"""Traces of a real broker at a real collector: what a message's spans say, and that none is lost or doubled, whoever dies."""

from __future__ import annotations

import json
import os
import signal
import sys
from subprocess import PIPE, Popen
from typing import Any

import psutil
import pytest

from dragoman.errors import DataDirectoryUnusable
from dragoman.journal.reader import JournalReader
from dragoman.otel.cursor import CURSOR_NAME, Cursor, write_cursor
from tests.independent import rq_peers, scale0_peers
from tests.otel.conftest import TracedBroker
from tests.otel.receiver import Receiver, receiver, values
from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import FREE, Daemon
from tests.runtime.peers import Client, Worker
from tests.waiting import wait_for

TOLD_S = 100.0  # the exporter runs when nobody else wants to
pytestmark = pytest.mark.timeout(240)

TRACE_ID, PARENT_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def otel_of(broker: Daemon) -> dict[str, Any]:
    found: dict[str, Any] = broker.ask("status")["otel"]
    return found


def wait_spans(collector: Receiver, name: str, count: int) -> None:
    wait_for(f"{count} spans {name!r}", lambda: len(collector.named(name)) >= count, TOLD_S)


def fact_of(facts: list[dict[str, Any]], name: str, attempt: int = 1) -> dict[str, Any]:
    return next(fact for fact in facts if fact["fact"] == name and fact.get("attempt", attempt) == attempt)


def exporter_of(broker: Daemon) -> psutil.Process:
    def is_exporter(process: psutil.Process) -> bool:
        try:
            return "dragoman.otel.process" in process.cmdline()
        except psutil.Error:  # killed a moment ago, and not yet buried
            return False

    def find() -> list[psutil.Process]:
        return [process for process in psutil.Process(broker.pid).children() if is_exporter(process)]

    return wait_for("the exporter's process", find, TOLD_S)[0]


def serve_one(broker: Daemon, queue: bytes, headers: bytes = b"reply-requested") -> bytes:
    """One message, answered."""
    with Client(broker) as client, Worker(broker, queue) as worker:
        request_id = client.request(queue, headers)
        worker.serve(1)
        if b"reply-requested" in headers:
            client.result(request_id)
        else:
            wait_for("its end", lambda: broker.facts_of(request_id)[-1]["fact"] == "closed")
    return request_id


def test_the_times_of_spans_are_those_of_the_facts(traced_broker: TracedBroker, collector: Receiver) -> None:
    broker = traced_broker()
    request_id = serve_one(broker, b"mail")
    wait_spans(collector, "message mail", 1)
    facts = broker.facts_of(request_id)
    accepted, leased, closed = (fact_of(facts, name)["time_ns"] for name in ("accepted", "leased", "closed"))
    found = {span.name: (span.start_time_unix_nano, span.end_time_unix_nano) for span in collector.by_id().values()}
    assert found == {
        "message mail": (accepted, closed),
        "wait mail": (accepted, leased),
        "work mail": (leased, closed),
        "reply mail": (closed, closed),
    }


def test_a_message_is_one_tree_with_the_conventions_words(traced_broker: TracedBroker, collector: Receiver) -> None:
    broker = traced_broker("otel.service_name=orders")
    request_id = serve_one(broker, b"mail")
    wait_spans(collector, "message mail", 1)
    (root,), (work,) = collector.named("message mail"), collector.named("work mail")
    assert root.parent_span_id == b""
    spans = collector.by_id().values()
    assert {span.parent_span_id for span in spans if span is not root} == {root.span_id}
    assert len({span.trace_id for span in spans}) == 1
    told = values(root.attributes)
    assert told["messaging.system"] == "dragoman"
    assert told["messaging.destination.name"] == "mail"
    assert told["dragoman.client.message.id"] == request_id.decode()
    assert told["dragoman.client.dialect"] == "emqp"
    assert told["dragoman.outcome"] == "done"
    assert root.status.code == work.status.code == 1
    assert values(work.attributes)["dragoman.worker.dialect"] == "emqp"
    assert collector.resources[0]["service.name"] == "orders"
    assert collector.requests[0]["path"] == "/v1/traces"


def test_a_clients_traceparent_is_the_trace_and_the_parent(traced_broker: TracedBroker, collector: Receiver) -> None:
    broker = traced_broker()
    serve_one(broker, b"mail", f"reply-requested,traceparent:00-{TRACE_ID}-{PARENT_ID}-01".encode())
    wait_spans(collector, "message mail", 1)
    (root,) = collector.named("message mail")
    assert root.parent_span_id.hex() == PARENT_ID
    assert {span.trace_id.hex() for span in collector.by_id().values()} == {TRACE_ID}


def test_a_scale0_clients_traceparent_is_the_trace_and_the_parent(new_broker: NewBroker, collector: Receiver) -> None:
    settings = (f"otel.endpoint={collector.endpoint}", "otel.interval_s=0.1", "otel.sample_ratio=0")
    broker = new_broker(*settings, listen=dict.fromkeys(["scale0.client", "scale0.worker"], FREE)).start()
    traceparent = f"traceparent:00-{TRACE_ID}-{PARENT_ID}-01"
    with scale0_peers.Client(broker.listen) as client, scale0_peers.Worker(broker.listen, "mail") as worker:
        for members in ([], [traceparent]):
            asked = client.ask("mail", b"job", *members)
            job, _ = worker.take()
            worker.answer(job, b"done")
            assert client.outcome(asked) == ("answered", b"done")
    wait_spans(collector, "message mail", 1)
    (root,) = collector.named("message mail")
    assert (root.parent_span_id.hex(), root.trace_id.hex()) == (PARENT_ID, TRACE_ID)
    assert values(root.attributes)["dragoman.client.dialect"] == "scale0"
    assert traceparent in worker.headers


def test_a_worker_that_says_it_has_begun_has_a_lease_of_its_own(new_broker: NewBroker, collector: Receiver) -> None:
    settings = (f"otel.endpoint={collector.endpoint}", "otel.interval_s=0.1")
    broker = new_broker(*settings, listen={"rq": FREE}).start()
    with rq_peers.Client(broker.listen) as client, rq_peers.Worker(broker.listen, "mail") as worker:
        asked = client.ask("mail", b"job")
        job, _ = worker.take()
        worker.answer(job, b"done")
        assert client.outcome(asked)[0] == "answered"
    wait_spans(collector, "message mail", 1)
    facts = [fact for fact in broker.facts() if fact.get("message_no")]
    leased, delivered, closed = (fact_of(facts, name)["time_ns"] for name in ("leased", "delivered", "closed"))
    (lease,), (work,) = collector.named("lease mail"), collector.named("work mail")
    assert (lease.start_time_unix_nano, lease.end_time_unix_nano) == (leased, delivered)
    assert (work.start_time_unix_nano, work.end_time_unix_nano) == (delivered, closed)
    assert values(lease.attributes)["dragoman.worker.id"] == values(work.attributes)["dragoman.worker.id"]


def test_the_sampling_decision_of_a_client_is_obeyed(traced_broker: TracedBroker, collector: Receiver) -> None:
    broker = traced_broker("otel.sample_ratio=0")
    serve_one(broker, b"unsampled", f"traceparent:00-{TRACE_ID}-{PARENT_ID}-00".encode())
    serve_one(broker, b"plain")
    serve_one(broker, b"sampled", f"reply-requested,traceparent:00-{TRACE_ID}-{PARENT_ID}-01".encode())
    wait_spans(collector, "message sampled", 1)
    assert {span.name.split()[1] for span in collector.by_id().values()} == {"sampled"}


def test_a_retry_is_linked_to_the_attempt_before(traced_broker: TracedBroker, collector: Receiver) -> None:
    broker = traced_broker("queues.backoff_initial_s=0.05")
    with Client(broker) as client, Worker(broker, b"mail", slots=2) as worker:
        request_id = client.request(b"mail", b"reply-requested,retry-count:3")
        worker.take()
        worker.answer(request_id, b'{"error":{"type":"Oops","message":"no"}}')
        worker.take()
        worker.answer(request_id)
        client.result(request_id)
    wait_spans(collector, "message mail", 1)
    first, second = collector.named("work mail")
    assert [(link.trace_id, link.span_id) for link in second.links] == [(first.trace_id, first.span_id)]
    assert list(first.links) == []
    assert (first.status.code, second.status.code) == (2, 1)
    assert values(first.attributes)["error.type"] == "failed"
    facts = broker.facts_of(request_id)
    released, leased = fact_of(facts, "released"), fact_of(facts, "leased", 2)
    assert first.end_time_unix_nano == released["time_ns"]
    first_wait, second_wait = collector.named("wait mail")
    assert second_wait.start_time_unix_nano == released["due_ns"], "backoff is nobody's queue"
    assert second_wait.end_time_unix_nano == second.start_time_unix_nano == leased["time_ns"]
    assert first_wait.end_time_unix_nano == first.start_time_unix_nano


def test_a_killed_exporter_loses_no_span_and_doubles_none_by_id(
    traced_broker: TracedBroker, collector: Receiver
) -> None:
    broker = traced_broker("otel.spans_max=7")
    for number in range(3):
        with Client(broker) as client, Worker(broker, b"mail", slots=20) as worker:
            ids = [client.request(b"mail", b"reply-requested") for _ in range(20)]
            worker.serve(20)
            for request_id in ids:
                client.result(request_id)
        exporter = exporter_of(broker)
        if number:
            wait_spans(collector, "message mail", 20 * number + 1)  # in the middle of its work
        os.kill(exporter.pid, signal.SIGKILL)
        wait_for("another exporter", lambda old=exporter: exporter_of(broker).pid != old.pid, TOLD_S)
    wait_spans(collector, "message mail", 60)
    wait_for("the exporter to be level", lambda: otel_of(broker)["behind"] == 0, TOLD_S)
    assert len(collector.by_id()) == 60 * 4
    assert otel_of(broker)["missed_facts"] == 0


def test_a_killed_broker_loses_no_span_and_remembers_whose_trace_it_was(
    traced_broker: TracedBroker, collector: Receiver
) -> None:
    broker = traced_broker()
    with Client(broker) as client, Worker(broker, b"mail", slots=20) as worker:
        ids = [
            client.request(b"mail", f"ack-requested,traceparent:00-{number:032x}-{PARENT_ID}-01".encode())
            for number in range(1, 21)
        ]
        for _ in ids:
            client.hear_word(b"ACK")
        for _ in range(10):  # the other ten are held when the broker dies
            worker.serve(1)
        wait_for("ten ends", lambda: broker.ask("counters")["settled"] >= 10)
        broker.kill()
    broker.start()
    held = 20 - broker.ask("counters")["settled"]  # an end that was not written when it died is none
    with Worker(broker, b"mail", slots=20) as worker:
        worker.serve(held)
        wait_spans(collector, "message mail", 20)
    roots = collector.named("message mail")
    assert {span.trace_id.hex() for span in roots} == {f"{number:032x}" for number in range(1, 21)}
    assert len(roots) == 20
    cut = [
        span
        for span in collector.named("work mail")
        if values(span.attributes).get("dragoman.reason") == "broker_started"
    ]
    again = [span for span in collector.named("work mail") if span.links]
    assert {span.span_id for span in cut} == {link.span_id for span in again for link in span.links}
    assert len(cut) == held >= 10


def test_while_the_collector_is_away_spans_wait_and_status_says_so(new_broker: NewBroker) -> None:
    with receiver(is_started=False) as collector:
        broker = new_broker(f"otel.endpoint={collector.endpoint}", "otel.interval_s=0.1").start()
        serve_one(broker, b"mail")
        wait_for("trouble", lambda: otel_of(broker)["trouble"], TOLD_S)
        assert "accepts no spans" in otel_of(broker)["trouble"]
        serve_one(broker, b"mail")
        collector.answer = 503
        collector.start()
        wait_for("a refused request", lambda: collector.requests, TOLD_S)
        assert collector.spans == []
        collector.answer = 200
        wait_spans(collector, "message mail", 2)
        wait_for("the trouble to be over", lambda: not otel_of(broker)["trouble"], TOLD_S)
        wait_for("all of them to be counted", lambda: otel_of(broker)["spans"] == 8, TOLD_S)
        assert len(collector.by_id()) == 8


def test_spans_that_were_not_exported_before_a_stop_are_exported_after_the_next_start(new_broker: NewBroker) -> None:
    with receiver(is_started=False) as collector:
        broker = new_broker(f"otel.endpoint={collector.endpoint}", "otel.interval_s=0.1").start()
        serve_one(broker, b"mail")
        wait_for("trouble", lambda: otel_of(broker)["trouble"], TOLD_S)
        assert broker.stop() == 0
        collector.start()
        broker.start()
        wait_spans(collector, "message mail", 1)


def test_a_stop_tells_the_last_spans(new_broker: NewBroker, collector: Receiver) -> None:
    """Without the broker, which would not wait for ever for a process that runs when nobody else wants to."""
    broker = new_broker().start()
    serve_one(broker, b"mail")
    assert broker.stop() == 0
    reader = JournalReader(str(broker.data / "journal"))
    last_lsn = max(block.last_lsn for block in reader.read(0))
    write_cursor(broker.data, Cursor(reader.broker_id().hex(), 0))  # type: ignore[union-attr]
    options = {
        "data": str(broker.data),
        "endpoint": collector.endpoint,
        "service_name": "mail",
        "sample_ratio": 1,
        "interval_s": 1000,
        "spans_max": 1000,
        "open_max": 1000,
        "compression": "none",
    }
    command = [sys.executable, "-m", "dragoman.otel.process", json.dumps(options)]
    exporter = Popen(command, stdin=PIPE, stdout=PIPE)
    assert exporter.stdin is not None
    assert exporter.stdout is not None
    exporter.stdin.write(f"headers {{}}\nsynced {last_lsn}\n".encode())
    exporter.stdin.flush()
    assert exporter.stdout.readline() == b"exported 0 0 0 0\n"
    assert collector.requests == [], "it waits for more"
    exporter.communicate(timeout=TOLD_S)
    assert exporter.returncode == 0
    assert len(collector.by_id()) == 4


def test_a_broker_counts_on_from_what_its_exporter_has_written_down(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    broker_id = JournalReader(str(broker.data / "journal")).broker_id()
    assert broker_id is not None
    assert broker.stop() == 0
    write_cursor(broker.data, Cursor(broker_id.hex(), 1, 0, 3, 4))
    with receiver(is_started=False) as collector:
        broker.flags += (f"--set=otel.endpoint={collector.endpoint}",)
        broker.start()
        assert (otel_of(broker)["missed_facts"], otel_of(broker)["refused_spans"]) == (3, 4)


def test_a_cursor_that_cannot_be_read_is_named(new_broker: NewBroker) -> None:
    broker = new_broker("otel.endpoint=http://127.0.0.1:9")
    broker.data.joinpath(CURSOR_NAME).mkdir(parents=True)
    process = broker.launch()
    assert process.exit_code(TOLD_S) == DataDirectoryUnusable.exit_code
    assert "(its otel.json) cannot be used: Is a directory" in process.log()
    assert "Traceback" not in process.log()


def test_an_exporter_that_ends_is_trouble_until_the_next_one_speaks(traced_broker: TracedBroker) -> None:
    broker = traced_broker()
    wait_for("the exporter to be level", lambda: otel_of(broker)["exported_lsn"] > 0, TOLD_S)
    exporter_of(broker).kill()
    wait_for("trouble", lambda: otel_of(broker)["trouble"] == "the exporter of traces ended with exit code -9", TOLD_S)
    wait_for("the trouble to be over", lambda: not otel_of(broker)["trouble"], TOLD_S)


def test_a_request_that_is_too_large_is_described_in_parts(traced_broker: TracedBroker, collector: Receiver) -> None:
    collector.spans_taken_max = 3
    broker = traced_broker()
    with Client(broker) as client, Worker(broker, b"mail", slots=10) as worker:
        for _ in range(10):
            client.request(b"mail", b"reply-requested")
        worker.serve(10)
        for _ in range(10):
            client.settled_id()
    wait_spans(collector, "message mail", 10)
    wait_for("the exporter to be level", lambda: otel_of(broker)["behind"] == 0, TOLD_S)
    assert len(collector.by_id()) == 40
    assert otel_of(broker)["refused_spans"] == 0


def test_facts_trimmed_while_the_collector_is_away_are_counted_as_missed(new_broker: NewBroker) -> None:
    with receiver(is_started=False) as collector:
        broker = new_broker(
            f"otel.endpoint={collector.endpoint}",
            "otel.interval_s=0.1",
            "otel.spans_max=1",
            "journal.segment_size=64KiB",
            "journal.size_max=1MiB",
        ).start()
        serve_one(broker, b"mail")
        wait_for("trouble", lambda: otel_of(broker)["trouble"], TOLD_S)
        first = min(broker.data.joinpath("journal").glob("*.seg"))
        with Client(broker) as client, Worker(broker, b"mail") as worker:

            def is_trimmed() -> bool:
                for _ in range(10):
                    request_id = client.request(b"mail", b"reply-requested", b"x" * 10_000)
                    worker.serve(1)
                    client.result(request_id)
                return not first.exists()

            wait_for("old segments to go", is_trimmed, TOLD_S)
        collector.start()
        wait_for("missed facts", lambda: otel_of(broker)["missed_facts"] > 0, TOLD_S)
        wait_for("the exporter to be level", lambda: otel_of(broker)["behind"] == 0, TOLD_S)
        assert collector.named("message mail")


def test_the_collectors_key_is_sent_and_shown_nowhere(new_broker: NewBroker, collector: Receiver) -> None:
    broker = new_broker(f"otel.endpoint={collector.endpoint}", env={"DRAGOMAN_OTEL__HEADERS": "api-key=s3cr3t-of-mine"})
    broker.start()
    serve_one(broker, b"mail")
    wait_spans(collector, "message mail", 1)
    assert collector.requests[0]["api-key"] == "s3cr3t-of-mine"
    shown = [broker.ask("config")["toml"], str(broker.ask("status")), broker.process.log()]
    shown += exporter_of(broker).cmdline()
    assert not any("s3cr3t" in text for text in shown)


@pytest.mark.parametrize("broker_id", ["", "ab" * 16])
def test_a_cursor_that_is_not_of_this_journal_is_not_believed(
    new_broker: NewBroker, collector: Receiver, broker_id: str
) -> None:
    broker = new_broker().start()
    serve_one(broker, b"old")
    broker_id = broker_id or JournalReader(str(broker.data / "journal")).broker_id().hex()  # type: ignore[union-attr]
    assert broker.stop() == 0
    write_cursor(broker.data, Cursor(broker_id, 10**9 if broker_id != "ab" * 16 else 1))
    broker.flags += (f"--set=otel.endpoint={collector.endpoint}", "--set=otel.interval_s=0.1")
    broker.start()
    serve_one(broker, b"new")
    wait_spans(collector, "message new", 1)
    assert collector.named("message old") == [], "a trace begins with the boot in which the endpoint was set"


def test_without_an_endpoint_there_is_no_child_and_no_file(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    serve_one(broker, b"mail")
    assert otel_of(broker) is None
    assert not [name for name in os.listdir(broker.data) if name.startswith("otel")]
    assert not any("dragoman.otel.process" in child.cmdline() for child in psutil.Process(broker.pid).children())


def test_without_an_endpoint_nothing_of_it_is_loaded(new_broker: NewBroker) -> None:
    broker = new_broker(env={"PYTHONPROFILEIMPORTTIME": "1"}).start()
    loaded = {line.rpartition("|")[2].strip() for line in broker.process.log().splitlines() if "|" in line}
    assert "dragoman.runtime.server" in loaded
    assert not {
        name for name in loaded if name.startswith("dragoman.otel") or name == "dragoman.runtime.children.tracing"
    }


def test_a_broker_that_keeps_nothing_has_nothing_to_tell(new_broker: NewBroker) -> None:
    broker = new_broker("otel.endpoint=http://127.0.0.1:9", durability="memory").start()
    assert otel_of(broker) is None
    assert any("no traces are exported" in line["event"] for line in broker.lines())
