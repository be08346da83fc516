"""The short run of the driver that lets Scale0's peers say anything."""

from __future__ import annotations

from tests.fuzz import scale0

SEED = 20
INPUTS = 8_000


def test_whatever_scale0_peers_say_the_broker_says_only_what_they_can_take() -> None:
    outcomes = scale0.FUZZER.run(INPUTS, SEED)
    assert sum(outcomes.values()) == INPUTS
    assert {"quiet", "BAD_FRAME_FLAGS"} <= set(outcomes)


def test_the_scale0_fuzz_reaches_every_kind_of_fact_its_peers_cause() -> None:
    told: set[str] = set()
    for number in range(6):
        told |= scale0.FUZZER.facts_of(SEED, number)
    assert told >= {"accepted", "leased", "released", "closed", "quarantined", "worker_joined", "worker_left", "late"}


def test_the_same_scale0_seed_gives_the_same_facts() -> None:
    assert scale0.FUZZER.digest_of(7, 0) == scale0.FUZZER.digest_of(7, 0)
