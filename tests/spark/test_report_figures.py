"""Figures at the edges of what they can show: nothing waited, one hour known. No table and no Spark is needed for that."""

from __future__ import annotations

import warnings

import pytest

from dragoman_spark.report import look, render
from dragoman_spark.report.period import Period
from dragoman_spark.report.sections import latency, waits

MINUTE_S = 60


def test_a_wait_of_nothing_is_drawn_at_the_foot_and_labelled() -> None:
    period = Period(first_s=0, last_s=2 * MINUTE_S)
    row = {"p50_ms": 0.0, "p95_ms": 1.8, "p99_ms": 7.0}
    by_step = {(step, measure): row for step in period.steps(MINUTE_S) for measure in ("wait", "total")}
    with render.drawing(), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = latency._figure(by_step, period, MINUTE_S)
        text = render.svg(figure, "latency")
    assert text.count(">p50<") == text.count(">p99<") == 2
    for axes in figure.axes:
        assert axes.get_position().height > 0.25, "the figure kept its layout"


@pytest.mark.parametrize(("low_ms", "high_ms"), [(1.21, 2.43), (0.31, 0.9), (100.0, 250.0)])
def test_a_narrow_range_is_described_by_its_ends(low_ms: float, high_ms: float) -> None:
    ticks = look.duration_ticks(low_ms, high_ms)
    assert len(ticks) >= 2
    assert all(low_ms <= tick <= high_ms for tick in ticks)


def test_the_scale_of_one_known_hour_has_numbers() -> None:
    with render.drawing():
        text = render.svg(waits._figure({16: 1.82}), "waits")
    assert "1.21" in text
    assert "2.43" in text
