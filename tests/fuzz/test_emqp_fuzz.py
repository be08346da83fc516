"""The short run of the eMQP fuzz driver; `make fuzz` has the long one."""

from __future__ import annotations

import pytest

from tests.fuzz import emqp

SEED = 20
INPUTS = 25_000


@pytest.mark.timeout(120)
def test_whatever_peers_say_only_documented_errors_come_out_and_the_core_stays_right() -> None:
    outcomes = emqp.run(INPUTS, SEED)
    assert sum(outcomes.values()) == INPUTS
    assert outcomes["taken"] > INPUTS // 2
    assert len(outcomes) > 3, "the driver is too tame"


def test_the_same_seed_gives_the_same_run() -> None:
    assert emqp.run(500, 7) == emqp.run(500, 7)
