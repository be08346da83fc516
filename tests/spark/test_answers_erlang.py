"""Erlang C in Spark against textbook values and a plain recomputation with exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dragoman_spark.transforms.forecast.erlang import staffing

LOADS = (0.001, 0.5, 1.0, 2.0, 7.25, 10.0, 81.0, 82.5, 250.0, 1000.0)
SERVICES_MS = (1.0, 50.0, 60_000.0)
WAITS_MS = (0.01, 1.0, 1000.0, 100_000.0)


class Staffing(NamedTuple):
    workers: int
    wait_ms: float
    wait_probability: float


def asked(spark: SparkSession, *cases: tuple[float | None, float | None, float]) -> list[Staffing | None]:
    frame = spark.createDataFrame(
        [(n, *case) for n, case in enumerate(cases)], "n int, load double, service_ms double, wait_ms double"
    )
    needed = staffing(F.col("load"), F.col("service_ms"), F.col("wait_ms")).alias("needed")
    rows = frame.select("n", needed).orderBy("n").collect()
    return [Staffing(*row["needed"]) if row["needed"] else None for row in rows]


def by_definition(workers: int, load: Fraction, service_ms: Fraction) -> tuple[Fraction, Fraction]:
    """Mean wait and share of waiting messages: the sum of Erlang's formula term by term, in fractions."""
    term = Fraction(1)
    below = Fraction(0)
    for k in range(workers):
        below += term
        term = term * load / (k + 1)
    all_busy = term * workers / (workers - load)
    waits = all_busy / (below + all_busy)
    return waits * service_ms / (workers - load), waits


def fewest(load: float, service_ms: float, wait_ms: float) -> Staffing:
    """Workers added one by one from the load on, by a running B: another way than the product's."""
    share_lost = 1.0
    workers = 0
    while True:
        workers += 1
        share_lost = load * share_lost / (workers + load * share_lost)
        if workers <= load:
            continue
        waits = share_lost / (1 - load / workers * (1 - share_lost))
        mean_ms = waits * service_ms / (workers - load)
        if mean_ms <= wait_ms:
            return Staffing(workers, mean_ms, waits)


def test_textbook_values(spark: SparkSession) -> None:
    # M/M/1 at half load: half of all wait, one service time on average. M/M/2 at one erlang: C = 1/3, W = S/3.
    # Ten erlangs on twelve: C = 0.4493 in every table of Erlang C.
    one, two, twelve = asked(spark, (0.5, 1000.0, 1000.0), (1.0, 900.0, 300.0), (10.0, 1000.0, 230.0))
    assert one == Staffing(1, pytest.approx(1000.0), pytest.approx(0.5))
    assert two == Staffing(2, pytest.approx(300.0), pytest.approx(1 / 3))
    assert twelve == Staffing(12, pytest.approx(224.65, abs=0.2), pytest.approx(0.4493, abs=0.0002))


def test_every_load_up_to_a_thousand_erlangs_agrees_with_a_plain_recomputation(spark: SparkSession) -> None:
    cases = [(load, service, wait) for load in LOADS for service in SERVICES_MS for wait in WAITS_MS]
    for case, answer in zip(cases, asked(spark, *cases), strict=True):
        expected = fewest(*case)
        assert answer is not None, case
        assert answer.workers == expected.workers, case
        assert answer.wait_ms == pytest.approx(expected.wait_ms, rel=1e-9), case
        assert answer.wait_probability == pytest.approx(expected.wait_probability, rel=1e-9), case


def test_the_answer_is_exact_and_one_worker_less_would_not_do(spark: SparkSession) -> None:
    load, service_ms, wait_ms = 82.5, 1000.0, 20.0
    (answer,) = asked(spark, (load, service_ms, wait_ms))
    assert answer is not None
    exact_ms, exact_share = by_definition(answer.workers, Fraction(load), Fraction(service_ms))
    less_ms, _ = by_definition(answer.workers - 1, Fraction(load), Fraction(service_ms))
    assert exact_ms <= wait_ms < less_ms
    assert answer.wait_ms == pytest.approx(float(exact_ms), rel=1e-12)
    assert answer.wait_probability == pytest.approx(float(exact_share), rel=1e-12)


def test_no_load_needs_no_worker_and_an_unknown_service_has_no_answer(spark: SparkSession) -> None:
    answers = asked(spark, (0.0, 10.0, 1.0), (0.0, None, 1.0), (None, None, 1.0), (1.0, None, 1.0))
    assert answers == [Staffing(0, 0.0, 0.0), Staffing(0, 0.0, 0.0), None, None]


def test_a_strict_objective_on_long_work_stays_finite(spark: SparkSession) -> None:
    """An hour's work, a microsecond's wait: the search must not run to the billions that service / wait says."""
    (answer,) = asked(spark, (1000.0, 3_600_000.0, 0.001))
    assert answer is not None
    assert answer.workers < 1400
    assert math.isfinite(answer.wait_ms)
    assert answer.wait_ms <= 0.001
