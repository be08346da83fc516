"""Counts across boots say since when they are whole, also where a broker has more queues than the page follows."""

from __future__ import annotations

from dragoman.web.samples.samples import CrossingSample, DialectSample, QueueSample, QueueTimes, Sample, Totals


def sample(started_ns: int, *queues: QueueSample, queues_total: int = 1) -> Sample:
    dialects, crossings = [DialectSample("emqp", 3)], [CrossingSample("emqp", "rq", 2)]
    return Sample(started_ns + 50, 1, started_ns, 0, 0, 0, 0, [], [], dialects, crossings, queues_total, list(queues))


def queue(number: int) -> QueueSample:
    return QueueSample(number, wait=[(3, 1)], total_time=[(7, 1)])


def test_boots_are_added_up() -> None:
    totals = Totals().plus(sample(100, queue(1))).plus(sample(900, queue(1)))
    assert totals == Totals(
        100,
        [DialectSample("emqp", 6)],
        [CrossingSample("emqp", "rq", 4)],
        {1: QueueTimes(100, {3: 2}, {7: 2})},
    )


def test_a_queue_that_was_not_among_the_samples_counts_from_the_start_on() -> None:
    first = Totals().plus(sample(100, queue(1), queues_total=2))
    second = first.plus(sample(900, queue(1), queue(2), queues_total=2))
    assert {number: times.since_ns for number, times in second.queues.items()} == {1: 100, 2: 900}
    assert second.since_ns == 100


def test_a_queue_that_was_not_there_before_counts_from_the_same_instant_as_all() -> None:
    assert Totals().plus(sample(100, queue(1))).times_with(queue(2), 900).since_ns == 100


def test_counts_are_since_the_earlier_instant_when_the_clock_was_set_back() -> None:
    totals = Totals().plus(sample(900, queue(1))).plus(sample(100, queue(1), queue(2)))
    assert totals.since_ns == totals.queues[1].since_ns == totals.queues[2].since_ns == 100
