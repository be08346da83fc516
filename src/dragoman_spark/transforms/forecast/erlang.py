"""Erlang's C formula as Spark expressions: how many workers keep the mean wait within an objective. No UDF.

Messages arrive at random, `load` of them are being processed on average (erlangs: arrivals × service), each worker has one at a time:

    1/B(0) = 1,  1/B(n) = 1 + n / load × 1/B(n-1)     share of messages that n workers without a queue would lose (Erlang B)
    C(n)   = n / ((n - load) / B(n) + load)           share of messages that wait for one of n workers            (Erlang C)
    W(n)   = C(n) × service / (n - load)              mean wait

The recursion carries 1/B, not B: it begins at 1 and grows large only where no more workers are needed, so nothing underflows.

The recursion need not begin at 0. Below the load a step multiplies an error of 1/B by n / load < 1, so an error at
load - 9 √load has shrunk by exp(-9²/2) when n reaches the load: less than a double's precision. So a load of 1000 costs some hundred
steps, not a thousand and more.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from dragoman_spark.transforms.once import once

_RUN_UP: Final = 9.0


def staffing(load: Column, service_ms: Column, wait_ms: Column) -> Column:
    """The fewest workers whose mean wait is at most `wait_ms`, as a struct: workers, wait_ms, wait_probability.

    Null if the load or the service time is unknown; no load needs no worker.
    """
    idle = F.struct(F.lit(0).alias("workers"), F.lit(0.0).alias("wait_ms"), F.lit(0.0).alias("wait_probability"))
    found = once(_search(load, service_ms, wait_ms), lambda end: _found(end, load, service_ms))
    return F.when(load == 0, idle).when((load > 0) & (service_ms > 0), found)


def _found(end: Column, load: Column, service_ms: Column) -> Column:
    spare = end["n"] - load
    waits = end["n"] / (spare * end["inverse"] + load)
    return F.struct(
        end["n"].alias("workers"), (waits * service_ms / spare).alias("wait_ms"), waits.alias("wait_probability")
    )


def _search(load: Column, service_ms: Column, wait_ms: Column) -> Column:
    """Two runs of the recursion: up to the load, where no number of workers is enough; then on, until one is."""
    first = F.greatest(F.lit(0), F.floor(load - _RUN_UP * F.sqrt(load))).cast("int")
    below = F.floor(load).cast("int")
    # With n < load workers about 1 - n/load of the messages are lost: a good estimate, and exact at 0.
    inverse_first = load / (load - first)
    steps = F.when(below > first, F.sequence(first + 1, below)).otherwise(F.array().cast("array<int>"))
    inverse_below = F.aggregate(steps, inverse_first, lambda inverse, n: 1 + n / load * inverse)
    enough = F.ceil(load + _margin(load, service_ms, wait_ms)).cast("int") + 1
    begin = F.struct(inverse_below.alias("inverse"), below.alias("n"))
    return F.aggregate(
        F.sequence(below + 1, enough),
        begin,
        lambda state, n: F.when(_is_enough(state, load, service_ms, wait_ms), state).otherwise(
            F.struct((1 + n / load * state["inverse"]).alias("inverse"), n.alias("n"))
        ),
    )


def _is_enough(state: Column, load: Column, service_ms: Column, wait_ms: Column) -> Column:
    """Whether W(n) is within the objective; multiplied out, as this is evaluated at each step."""
    n, spare = state["n"], state["n"] - load
    return (n > load) & (n * service_ms <= wait_ms * spare * (spare * state["inverse"] + load))


def _margin(load: Column, service_ms: Column, wait_ms: Column) -> Column:
    """A number of workers above the load that is always enough: the smaller of two bounds.

    All wait (C = 1): service / (n - load) is within the objective. Or few wait: by Chernoff's bound of the Poisson tail,
    C(load + x) × service / x is, once x² / (2 (load + x/3)) reaches the logarithm of 2 (load + 1) service / wait.
    """
    all_wait = service_ms / wait_ms
    log = F.greatest(F.log(2 * (load + 1) * service_ms / wait_ms), F.lit(0.0))
    few_wait = log / 3 + F.sqrt(log * log / 9 + 2 * load * log)
    return F.least(all_wait, F.greatest(few_wait, F.lit(1.0)))
