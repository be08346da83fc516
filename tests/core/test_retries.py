"""What becomes of a message whose attempt did not end in success: the table of core/retries, row by row."""

from __future__ import annotations

import pytest

from dragoman.core.retries import AGAIN, END, TO_QUARANTINE, backoff_ns, judge
from dragoman.core.settings import CoreSettings
from dragoman.limits import BACKOFF_DOUBLINGS_MAX
from dragoman.model.enums import (
    BROKER_STARTED,
    EMQP,
    FAILED,
    FAILURE_FINAL,
    GUARANTEED,
    RETURNED,
    TIMED_OUT,
    WORKER_LEFT,
    WORKER_LOST,
    WORKERS_DIED,
)
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS

NOW_NS = 1_000 * SECOND_NS


def attempted(retries: int = -1, flags: int = 0, attempt: int = 1) -> Message:
    m = Message(EMQP, b"mail", b"id", b"")
    m.retries_left, m.flags, m.attempt = retries, flags, attempt
    return m


def verdict(m: Message, reason: int, deaths: int = 0, quarantine_after: int = 3) -> tuple[int, int, int, int]:
    settings = CoreSettings()
    settings.quarantine_after = quarantine_after
    found = judge(m, reason, deaths, settings, NOW_NS)
    return found.what, found.reason, found.retries_left, found.due_ns - NOW_NS if found.due_ns else 0


@pytest.mark.parametrize("reason", [FAILED, TIMED_OUT])
def test_a_failure_or_timeout_uses_one_retry_and_waits(reason: int) -> None:
    assert verdict(attempted(retries=2), reason) == (AGAIN, reason, 1, SECOND_NS)


@pytest.mark.parametrize("reason", [FAILED, TIMED_OUT, WORKER_LOST])
def test_without_a_retry_left_it_ends(reason: int) -> None:
    assert verdict(attempted(retries=0, attempt=3), reason, deaths=1)[:3] == (END, reason, 0)


@pytest.mark.parametrize("reason", [FAILED, TIMED_OUT, WORKER_LOST])
def test_a_guaranteed_one_without_a_retry_left_is_set_aside_never_settled(reason: int) -> None:
    assert verdict(attempted(retries=0, flags=GUARANTEED), reason, deaths=1)[0] == TO_QUARANTINE


@pytest.mark.parametrize("reason", [FAILED, TIMED_OUT])
def test_without_client_options_a_failure_or_timeout_is_the_end(reason: int) -> None:
    assert verdict(attempted(), reason)[0] == END


@pytest.mark.parametrize("reason", [FAILED, TIMED_OUT])
def test_guaranteed_alone_is_tried_again_for_as_long_as_it_takes(reason: int) -> None:
    for attempt in (1, 5, 500):
        what, _, retries, due_ns = verdict(attempted(flags=GUARANTEED, attempt=attempt), reason)
        assert (what, retries) == (AGAIN, -1)
        assert due_ns > 0


def test_the_first_lost_worker_costs_a_retry_but_no_time() -> None:
    assert verdict(attempted(retries=1), WORKER_LOST, deaths=1) == (AGAIN, WORKER_LOST, 0, 0)


def test_a_second_lost_worker_costs_time_too() -> None:
    assert verdict(attempted(retries=1, attempt=2), WORKER_LOST, deaths=2) == (AGAIN, WORKER_LOST, 0, 2 * SECOND_NS)


def test_without_client_options_a_lost_worker_is_never_the_end() -> None:
    assert verdict(attempted(attempt=9), WORKER_LOST, deaths=2, quarantine_after=0)[0] == AGAIN


@pytest.mark.parametrize("reason", [WORKER_LEFT, BROKER_STARTED])
@pytest.mark.parametrize("retries", [-1, 0, 3])
def test_what_a_leaving_worker_held_goes_again_at_once_and_uncounted(reason: int, retries: int) -> None:
    assert verdict(attempted(retries=retries, attempt=7), reason) == (AGAIN, reason, retries, 0)


def test_what_a_worker_returned_uses_up_a_retry_at_once_and_without_one_it_ends() -> None:
    assert verdict(attempted(retries=3, attempt=2), RETURNED) == (AGAIN, RETURNED, 2, 0)
    assert verdict(attempted(retries=0, attempt=2), RETURNED)[0] == END


def test_where_a_failure_is_final_retries_are_for_the_lost_and_the_timed_out() -> None:
    assert verdict(attempted(retries=3, flags=FAILURE_FINAL), FAILED)[0] == END
    assert verdict(attempted(retries=3, flags=FAILURE_FINAL), TIMED_OUT)[0] == AGAIN
    assert verdict(attempted(retries=3, flags=FAILURE_FINAL), WORKER_LOST, deaths=1)[0] == AGAIN


def test_without_client_options_a_returned_message_goes_again_with_backoff() -> None:
    assert verdict(attempted(attempt=2), RETURNED) == (AGAIN, RETURNED, -1, 2 * SECOND_NS)


@pytest.mark.parametrize(("retries", "flags"), [(-1, 0), (5, 0), (-1, GUARANTEED)])
def test_what_outlived_so_many_workers_is_set_aside_whatever_it_asked_for(retries: int, flags: int) -> None:
    assert verdict(attempted(retries, flags), WORKER_LOST, deaths=2)[0] == AGAIN
    what, reason, _, _ = verdict(attempted(retries, flags), WORKER_LOST, deaths=3)
    assert (what, reason) == (TO_QUARANTINE, WORKERS_DIED)


def test_failures_and_timeouts_never_count_as_deaths() -> None:
    assert verdict(attempted(retries=1), FAILED, deaths=9)[0] == AGAIN
    assert verdict(attempted(retries=1), TIMED_OUT, deaths=9)[0] == AGAIN


def test_backoff_doubles_up_to_its_ceiling_and_never_overflows() -> None:
    settings = CoreSettings()
    waits = [backoff_ns(attempt, settings) for attempt in (0, 1, 2, 3, 7, 8, BACKOFF_DOUBLINGS_MAX + 50)]
    assert waits == [SECOND_NS * n for n in (1, 1, 2, 4, 60, 60, 60)]
