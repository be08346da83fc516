"""nan and the infinities are refused with words: JSON has none for them, and null is another value."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import msgspec
import pytest

from dragoman.client.body import Answers, Arguments, failure_of, value_of
from dragoman.errors import JobFailed, NotFinite
from dragoman.testing.broker import RunningBroker

NAN, INF = math.nan, math.inf


class Price(msgspec.Struct):
    amount: float
    note: str | None = None


@dataclasses.dataclass
class Order:
    prices: list[Price]


def example(a: Any, b: Any = None) -> Any:
    return a


def starred(*more: Any, **named: Any) -> Any:
    return more


PLAIN, STARRED = Arguments(example, "m", "example"), Arguments(starred, "m", "starred")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (NAN, "the result is nan"),
        (INF, "the result is inf"),
        (-INF, "the result is -inf"),
        ([1.0, None, NAN], "the result[2] is nan"),
        ({"rates": {"eur": [1.5, INF]}}, "the result['rates']['eur'][1] is inf"),
        (Order([Price(1.0), Price(NAN, "x")]), "the result['prices'][1]['amount'] is nan"),
        ((1, {"a": -INF}), "the result[1]['a'] is -inf"),
        ([{"x": None, "y": 0.5}] * 1000 + [{"y": NAN}], "the result[1000]['y'] is nan"),
    ],
)
def test_a_result_that_is_not_finite_names_the_value(value: Any, words: str) -> None:
    with pytest.raises(NotFinite) as refused:
        value_of(value)
    assert str(refused.value).startswith(words + ": JSON has no such number")
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize("value", [None, [None, 1.5], {"null": None}, "null", Price(1.0), 1e308, {1.5: None}])
def test_null_itself_is_a_value(value: Any) -> None:
    assert b"null" in value_of(value) or value == 1e308


@pytest.mark.parametrize(
    ("arguments", "args", "kwargs"),
    [
        (PLAIN, (NAN,), {}),
        (PLAIN, (1,), {"b": [INF]}),
        (STARRED, (1, NAN), {}),
        (STARRED, (), {"b": {"c": NAN}}),
    ],
)
def test_arguments_are_refused_before_anything_is_sent(arguments: Arguments, args: Any, kwargs: Any) -> None:
    with pytest.raises(NotFinite, match=r"the arguments.* is (nan|inf)"):
        arguments.body(args, kwargs)


def test_the_text_of_a_long_path_is_bounded() -> None:
    with pytest.raises(NotFinite) as refused:
        value_of({"k" * 100_000: NAN})
    assert len(str(refused.value)) < 500


def test_a_failure_is_bounded_on_both_ends() -> None:
    said = failure_of(ValueError("x" * 10_000_000))
    assert len(said) < 10_000
    with pytest.raises(JobFailed, match="more characters") as failed:
        Answers(example).read(b'{"error":{"type":"%s","message":"%s"}}' % (b"T" * 1_000_000, b"m" * 1_000_000))
    assert len(str(failed.value)) < 10_000


def test_the_asker_hears_which_value_it_was(broker: RunningBroker) -> None:
    app = broker.app(answer_s=20)

    @app.job(queue="numbers")
    def ratio(a: float, b: float) -> dict[str, float]:
        return {"ratio": a / b if b else INF}

    with broker.worker(app), app:
        assert ratio.ask_sync(1.0, 2.0) == {"ratio": 0.5}
        with pytest.raises(JobFailed, match=r"NotFinite: the result\['ratio'\] is inf"):
            ratio.ask_sync(1.0, 0.0)
        with pytest.raises(NotFinite, match=r"the arguments\['b'\] is nan"):
            ratio.ask_sync(1.0, NAN)
        with pytest.raises(NotFinite, match="the news"):
            app.publish_sync("rates", {"eur": NAN})
