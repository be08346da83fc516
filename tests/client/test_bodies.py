"""Bodies and options: what is on the wire, and what comes out of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.client.address import parse
from dragoman.client.body import Answers, Arguments, decode_run, failure_of, plain_value, value_of
from dragoman.client.options import Options, call_options, dedupe_text
from dragoman.dialects.emqp.endpoints import form_of
from dragoman.errors import JobFailed, Refused


def example(a: int, b: str = "b", *, c: list[int] | None = None) -> list[int]:
    return [a, *(c or [])]


EXAMPLE = Arguments(example, "shop.jobs", "example")


def trip(*args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    return EXAMPLE.decode(decode_run(EXAMPLE.body(args, kwargs)))


def test_a_body_has_the_shape_of_the_original() -> None:
    assert json.loads(EXAMPLE.body((1,), {"c": [2]})) == [
        "run",
        {
            "path": "shop.jobs",
            "callable": "example",
            "class_args": [],
            "class_kwargs": {},
            "args": [],
            "kwargs": {"a": 1, "c": [2]},
        },
    ]


def test_arguments_arrive_with_their_defaults() -> None:
    assert trip(1) == ([], {"a": 1, "b": "b", "c": None})
    assert trip(1, "x", c=[3]) == ([], {"a": 1, "b": "x", "c": [3]})


def test_an_original_clients_positional_arguments_are_converted_too() -> None:
    run = decode_run(b'["run", {"path": "p", "callable": "c", "args": [1, "x"], "kwargs": {"c": [1]}}]')
    args, kwargs = EXAMPLE.decode(run)
    assert (args, kwargs) == ([1, "x"], {"c": [1]})


def test_a_mutable_default_is_the_functions_own() -> None:
    shared: list[int] = []

    def keeps(items: list[int] = shared) -> None: ...

    arguments = Arguments(keeps, "p", "keeps")
    assert arguments.decode(decode_run(arguments.body((), {})))[1]["items"] is shared


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'["run"]', b'["run", {}]', b'["run", []]', b"\xff"])
def test_what_is_no_job_cannot_be_decoded(body: bytes) -> None:
    with pytest.raises(ValueError):
        decode_run(body)


def test_answers_become_results_or_exceptions() -> None:
    answers = Answers(example)
    assert answers.read(value_of([1, 2])) == [1, 2]
    with pytest.raises(JobFailed, match="ValueError: no"):
        answers.read(failure_of(ValueError("no")))
    with pytest.raises(Refused) as refused:
        answers.read(b'{"error":{"type":"QUEUE_FULL","message":"full"}}')
    assert refused.value.refusal == "QUEUE_FULL"
    with pytest.raises(JobFailed, match="ran out of time"):
        answers.read(b'{"value": "TimeoutError"}')
    with pytest.raises(JobFailed, match="BadAnswer"):
        answers.read(b'{"value": "what the original says of an exception"}')
    for nonsense in (b"", b"{}", b"[]", b"\xff", b'{"error": 7}'):
        with pytest.raises(JobFailed):
            answers.read(nonsense)
        with pytest.raises(JobFailed):
            plain_value(nonsense)


def test_a_result_of_none_is_a_result() -> None:
    def nothing() -> None: ...

    assert Answers(nothing).read(value_of(None)) is None


def headers_of(options: Options, dedupe: str | None = None) -> bytes:
    made = call_options(parse("emqp://127.0.0.1"), options.queue, options, True, 1.0, dedupe=dedupe)
    return form_of(made).frames


def test_options_become_headers() -> None:
    options = Options("q", 3, 30, 9, 0.5, 60, None, True)
    headers = b"reply-requested,guarantee,retry-count:3,timeout:30,priority:9,delay:0.5,expires:60"
    assert headers_of(options).endswith(headers)
    assert headers_of(Options()).endswith(b"reply-requested")
    assert headers_of(Options(), "a,b").endswith(b"reply-requested,dedupe:a%2Cb")


@pytest.mark.parametrize(
    "wrong",
    [
        {"queue": ""},
        {"retries": -1},
        {"priority": 10},
        {"timeout_s": -1},
        {"delay_s": float("nan")},
        {"queue": "q" * 256},
    ],
)
def test_options_that_make_no_sense_are_refused_where_they_are_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Options(**wrong)


def test_a_dedupe_key_is_safe_inside_the_headers() -> None:
    key = dedupe_text("a,b\n\xe9")
    assert key.isascii()
    assert "," not in key
    assert "\n" not in key
    long = dedupe_text("k" * 1000)
    assert long.startswith("sha256:")
    assert long != dedupe_text("k" * 1001)


def test_a_dedupe_key_may_be_made_of_the_arguments() -> None:
    assert Options(dedupe=lambda to: f"mail {to}").dedupe_key((), {"to": "x"}) == "mail x"
    assert Options(dedupe="mail").dedupe_key((), {"to": "x"}) == "mail"
    assert Options().dedupe_key((), {}) is None


class Mute(Exception):
    def __str__(self) -> str:
        raise KeyError("lost")


@pytest.mark.parametrize("error", [FileNotFoundError("b\udcff.txt"), Mute()])
def test_a_failure_whose_text_is_no_unicode_or_cannot_be_had_is_still_reported(error: Exception) -> None:
    with pytest.raises(JobFailed, match=type(error).__name__):
        plain_value(failure_of(error))
