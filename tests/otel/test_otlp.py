"""What is packed by hand is what OpenTelemetry's own classes would have packed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from dragoman.otel.otlp import WORDS_SIZE_MAX, Encoder, encode, read_fields, rejected_spans
from dragoman.otel.spans import Span, SpanId

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
INSTANTS = st.integers(0, 2**63 - 1)
SPANS = st.builds(
    Span,
    st.binary(min_size=16, max_size=16),
    st.binary(min_size=8, max_size=8),
    st.just(b"") | st.binary(min_size=8, max_size=8),
    TEXTS,
    st.integers(0, 5),
    INSTANTS,
    INSTANTS,
    st.dictionaries(TEXTS, TEXTS | st.integers(-(2**63), 2**63 - 1), max_size=5),
    st.integers(0, 2),
    TEXTS,
    st.booleans(),
    st.lists(st.builds(SpanId, st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8)), max_size=3),
)


def as_the_classes_say_it(span: Span) -> trace_pb2.Span:
    return trace_pb2.Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_id,
        flags=0x301 if span.is_parent_remote else 0x101,
        name=span.name,
        kind=span.kind,
        start_time_unix_nano=span.start_ns,
        end_time_unix_nano=span.end_ns,
        attributes=[
            KeyValue(
                key=key, value=AnyValue(string_value=value) if isinstance(value, str) else AnyValue(int_value=value)
            )
            for key, value in span.attributes.items()
        ],
        links=[trace_pb2.Span.Link(trace_id=link.trace_id, span_id=link.span_id) for link in span.links],
        status=trace_pb2.Status(code=span.status, message=span.problem),
    )


@given(SPANS)
def test_a_span_is_the_same_to_those_who_made_the_format(span: Span) -> None:
    assert trace_pb2.Span.FromString(encode(span)) == as_the_classes_say_it(span)


@given(st.lists(SPANS, max_size=4), TEXTS)
def test_a_request_holds_its_spans_and_whose_they_are(spans: list[Span], service_name: str) -> None:
    request = ExportTraceServiceRequest.FromString(Encoder(service_name, bytes(range(16))).request(spans))
    (traced,) = request.resource_spans
    (scoped,) = traced.scope_spans
    told = {pair.key: pair.value.string_value for pair in traced.resource.attributes}
    assert (told["service.name"], told["service.instance.id"]) == (service_name, bytes(range(16)).hex())
    assert list(scoped.spans) == [as_the_classes_say_it(span) for span in spans]


@given(st.integers(0, 2**63 - 1), TEXTS)
def test_what_a_collector_does_not_take_is_read(rejected: int, words: str) -> None:
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = rejected
    response.partial_success.error_message = words
    repeated = words.encode()[:WORDS_SIZE_MAX].decode("utf-8", "replace")
    assert rejected_spans(response.SerializeToString()) == (rejected, repeated)


@given(st.binary(max_size=200))
def test_an_answer_of_any_bytes_breaks_nothing(data: bytes) -> None:
    rejected, words = rejected_spans(data)
    assert rejected >= 0
    assert isinstance(words, str)


@pytest.mark.parametrize("data", [b"\x80", b"\x0a\x05abc", b"\x0b", b"\xff" * 11, b"\x09\x00"])
def test_bytes_that_are_no_message_are_reported(data: bytes) -> None:
    with pytest.raises(ValueError):
        read_fields(data)
