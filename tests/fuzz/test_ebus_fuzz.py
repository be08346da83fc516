"""The short run of the driver that looks at what the broker says to ebus peers."""

from __future__ import annotations

from tests.fuzz import ebus

SEED = 20
INPUTS = 20_000


def test_whatever_ebus_peers_say_the_broker_says_only_what_its_receivers_can_take() -> None:
    outcomes = ebus.FUZZER.run(INPUTS, SEED)
    assert sum(outcomes.values()) == INPUTS
    assert {"quiet", "BAD_FRAME_FLAGS", "TOO_MANY_FRAMES"} <= set(outcomes)


def test_the_ebus_fuzz_reaches_every_kind_of_fact_that_its_peers_and_operators_cause() -> None:
    """A driver too tame to cause a fact would prove nothing about it."""
    told: set[str] = set()
    for number in range(6):
        told |= ebus.FUZZER.facts_of(SEED, number)
    assert told >= {
        "accepted", "leased", "released", "closed", "quarantined", "requeued", "worker_joined", "worker_left", "queue_named",
        "published", "late", "noted", "paused", "resumed",
    }  # fmt: skip


def test_the_same_seed_gives_the_same_ebus_facts() -> None:
    assert ebus.FUZZER.digest_of(7, 0) == ebus.FUZZER.digest_of(7, 0)
