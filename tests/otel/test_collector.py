"""What a collector may answer, and what the exporter makes of it; and the file that says how far it came."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from dragoman.errors import CollectorAway, ExporterBusy, SpansRefused
from dragoman.otel.collector import RETRY_AFTER_S_MAX, Collector, retry_after_s
from dragoman.otel.cursor import CURSOR_NAME, Cursor, read_cursor, write_cursor
from dragoman.otel.otlp import Encoder, rejected_spans
from dragoman.otel.process import exporting_alone
from dragoman.otel.spans import CONSUMER, OK, Span, SpanId
from tests.otel.receiver import Receiver, receiver, values

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
