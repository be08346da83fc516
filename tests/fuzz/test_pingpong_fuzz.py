"""The short run of the driver that lets ping-pong peers say anything."""

from __future__ import annotations

from tests.fuzz import pingpong

SEED = 20
INPUTS = 8_000


def test_whatever_pingpong_peers_say_a_result_reaches_only_the_client_that_asked() -> None:
    outcomes = pingpong.FUZZER.run(INPUTS, SEED)
    assert sum(outcomes.values()) == INPUTS
    assert {"quiet", "TOO_MANY_FRAMES"} <= set(outcomes)


def test_the_pingpong_fuzz_reaches_every_kind_of_fact_its_peers_cause() -> None:
    told: set[str] = set()
    for number in range(6):
        told |= pingpong.FUZZER.facts_of(SEED, number)
    assert told >= {"accepted", "leased", "released", "closed", "quarantined", "worker_joined", "worker_left", "late"}


def test_a_result_that_was_doubled_on_its_way_is_not_held_against_the_broker() -> None:
    """Found by seed 396789: the bytes of a worker were spoilt so that they held its result twice."""
    outcomes, _ = pingpong.one_round(396789, 866, 1000)
    assert sum(outcomes.values()) == 1000


def test_the_same_pingpong_seed_gives_the_same_facts() -> None:
    assert pingpong.FUZZER.digest_of(7, 0) == pingpong.FUZZER.digest_of(7, 0)
