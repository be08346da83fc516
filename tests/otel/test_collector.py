"""What a collector may answer, and what the exporter makes of it; and the file that says how far it came."""

from __future__ import annotations

import itertools
from contextlib import closing
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from dragoman.errors import CollectorAway, ExporterBusy, SpansRefused
from dragoman.otel.collector import RETRY_AFTER_S_MAX, TIMEOUT_S, Collector, retry_after_s
from dragoman.otel.cursor import CURSOR_NAME, Cursor, read_cursor, write_cursor
from dragoman.otel.otlp import Encoder, rejected_spans
from dragoman.otel.process import exporting_alone
from dragoman.otel.spans import CONSUMER, OK, Span, SpanId
from dragoman.runtime.children.tracing import Tracing
from tests.otel.receiver import Receiver, receiver, values
from tests.otel.talker import talking

SPAN = Span(
    b"t" * 16, b"s" * 8, b"p" * 8, "message mail", CONSUMER, 1, 2, {"a": "b", "n": 3}, OK, links=[SpanId(b"t" * 16, b"l" * 8)]
)  # fmt: skip
REQUEST = Encoder("orders", bytes(16)).request([SPAN])


def post(collector: Receiver, headers: dict[str, str] | None = None, compression: str = "none") -> bytes:
    with closing(Collector(collector.endpoint, headers or {}, compression)) as sender:
        return sender.post(REQUEST)


def test_a_span_arrives_as_it_was_made(collector: Receiver) -> None:
    post(collector, {"Tenant": "7"})
    (span,) = collector.spans
    assert (span.trace_id, span.span_id, span.parent_span_id) == (SPAN.trace_id, SPAN.span_id, SPAN.parent_id)
    assert (span.start_time_unix_nano, span.end_time_unix_nano, span.kind, span.status.code) == (1, 2, CONSUMER, OK)
    assert values(span.attributes) == {"a": "b", "n": 3}
    assert [link.span_id for link in span.links] == [b"l" * 8]
    assert collector.requests[0]["tenant"] == "7"


def test_a_packed_request_is_unpacked(collector: Receiver) -> None:
    post(collector, compression="gzip")
    assert len(collector.spans) == 1


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_a_collector_that_may_take_it_later_is_away(collector: Receiver, status: int) -> None:
    collector.answer = status
    with pytest.raises(CollectorAway, match=f"it answers {status}"):
        post(collector)


@pytest.mark.parametrize("status", [400, 413])
def test_one_that_never_will_refuses(collector: Receiver, status: int) -> None:
    collector.answer = status
    with pytest.raises(SpansRefused):
        post(collector)


def test_a_redirect_is_not_followed(collector: Receiver) -> None:
    collector.answer = 307
    with pytest.raises(CollectorAway, match="307"):
        post(collector)
    assert len(collector.requests) == 1


def test_a_kept_connection_that_has_ended_meanwhile_is_no_trouble() -> None:
    with receiver() as collector, closing(Collector(collector.endpoint, {})) as sender:
        sender.post(REQUEST)
        collector.stop()
        collector.start()
        sender._connection.sock.close()  # type: ignore[union-attr]  # as a server that has had enough of it
        sender.post(REQUEST)
        assert len(collector.spans) == 2


def test_a_collector_that_is_not_there_is_away() -> None:
    with receiver(is_started=False) as collector, pytest.raises(CollectorAway, match="refused"):
        post(collector)


def test_a_name_that_cannot_be_looked_up_is_away() -> None:
    with closing(Collector("http://a..b:4318", {})) as sender, pytest.raises(CollectorAway, match=r"a\.\.b"):
        sender.post(REQUEST)


@pytest.mark.parametrize("status_line", [b"HTTP/1.1 503 " + b"x" * 60_000, b"y" * 60_000])
def test_a_collectors_words_are_repeated_as_far_as_they_are_short(status_line: bytes) -> None:
    answer = [status_line + b"\r\nContent-Length: 0\r\n\r\n"]
    with (
        talking(answer) as talker,
        closing(Collector(talker.endpoint, {})) as sender,
        pytest.raises(CollectorAway) as failure,
    ):
        sender.post(REQUEST)
    assert len(str(failure.value)) < 400


def test_its_words_about_spans_it_did_not_take_are_short_too() -> None:
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 2
    answer.partial_success.error_message = "no " * 30_000
    assert rejected_spans(answer.SerializeToString()) == (2, ("no " * 70)[:200])


@pytest.mark.parametrize("beginning", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n"])
def test_one_that_says_a_byte_now_and_then_is_away(beginning: bytes) -> None:
    answer = itertools.chain([beginning], itertools.repeat(b"x"))
    with talking(answer) as talker, pytest.raises(CollectorAway, match="timed out"):
        Collector(talker.endpoint, {}, timeout_s=0.5).post(REQUEST)


def test_one_that_falls_silent_on_a_kept_connection_is_not_asked_again_at_once() -> None:
    with talking([b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]) as talker:
        sender = Collector(talker.endpoint, {}, timeout_s=3.0)
        sender.post(REQUEST)
        for _ in range(2):
            with pytest.raises(CollectorAway, match="timed out"):
                sender.post(REQUEST)
    assert talker.requests == 3, "one for each post"


def test_a_broker_that_stops_waits_longer_than_its_exporter_does_for_an_answer() -> None:
    assert Tracing.finish_s > TIMEOUT_S


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [(None, 0.0), ("7", 7.0), ("999999", RETRY_AFTER_S_MAX), ("-1", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0)],
)
def test_a_wait_it_asks_for_is_kept_to_within_reason(text: str | None, wait_s: float) -> None:
    assert retry_after_s(text) == wait_s


def test_an_answer_that_is_no_protobuf_refuses_nothing() -> None:
    assert rejected_spans(b"") == (0, "")
    assert rejected_spans(b'{"partialSuccess":{}}') == (0, "")


def test_the_cursor_is_read_as_it_was_written_and_never_half(tmp_path: Path) -> None:
    assert read_cursor(tmp_path) is None
    for lsn in (1, 2):
        write_cursor(tmp_path, Cursor("ab", lsn, 1, 3, 4))
        assert read_cursor(tmp_path) == Cursor("ab", lsn, 1, 3, 4)
    (tmp_path / CURSOR_NAME).write_bytes(b'{"broker":"ab","ls')
    assert read_cursor(tmp_path) is None
    assert [path.name for path in tmp_path.iterdir()] == [CURSOR_NAME]


def test_a_second_exporter_of_the_same_journal_is_refused(tmp_path: Path) -> None:
    with exporting_alone(str(tmp_path)), pytest.raises(ExporterBusy), exporting_alone(str(tmp_path)):
        pass
    with exporting_alone(str(tmp_path)):
        pass
