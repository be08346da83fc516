"""A `traceparent` is believed only where it is exactly one."""

from __future__ import annotations

import pytest

from dragoman.otel.spans import Context, context_of, find_context

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
FOUND = Context(bytes.fromhex(TRACE), bytes.fromhex(SPAN), True)


@pytest.mark.parametrize(
    ("headers", "context"),
    [
        (f"traceparent:00-{TRACE}-{SPAN}-01", FOUND),
        (f"reply-requested, TraceParent : 00-{TRACE}-{SPAN}-01 ,timeout:3", FOUND),
        (f"traceparent:00-{TRACE}-{SPAN}-00", FOUND._replace(is_sampled=False)),
        (f"traceparent:00-{TRACE}-{SPAN}-03", FOUND),
        (f"traceparent:cc-{TRACE}-{SPAN}-01-what-the-future-brings", FOUND),
    ],
)
def test_what_is_one_is_read(headers: str, context: Context) -> None:
    assert find_context(headers.encode()) == context


@pytest.mark.parametrize(
    "headers",
    [
        "",
        "reply-requested",
        "traceparent:",
        "traceparent:00-ab-cd-01",
        f"traceparent:00-{TRACE}-{SPAN}-01-more",
        f"traceparent:00-{TRACE.upper()}-{SPAN}-01",
        f"traceparent:00-{TRACE}-{SPAN}-0",
        f"traceparent:ff-{TRACE}-{SPAN}-01",
        f"traceparent:00-{'0' * 32}-{SPAN}-01",
        f"traceparent:00-{TRACE}-{'0' * 16}-01",
        f"x-traceparent:00-{TRACE}-{SPAN}-01",
    ],
)
def test_what_is_none_is_not_guessed_at(headers: str) -> None:
    assert find_context(headers.encode()) is None


@pytest.mark.parametrize(
    ("dialect", "headers", "is_believed"),
    [
        ("emqp", f"shop:7,traceparent:00-{TRACE}-{SPAN}-01", True),
        ("internal", f"traceparent:00-{TRACE}-{SPAN}-01", True),
        ("scale0", f"traceparent:00-{TRACE}-{SPAN}-01", True),
        ("scale0", f'traceparent:00-{TRACE}-{SPAN}-01,"an id, quoted"', True),
        ("scale0", f'"an id,traceparent:00-{TRACE}-{SPAN}-01"', False),
        ("ebus", f"traceparent:00-{TRACE}-{SPAN}-01", False),
    ],
)
def test_where_it_may_stand_is_the_dialects_affair(dialect: str, headers: str, is_believed: bool) -> None:
    assert context_of(dialect, headers.encode()) == (FOUND if is_believed else None)
