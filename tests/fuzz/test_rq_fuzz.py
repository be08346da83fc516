"""The short run of the driver that looks at what the broker says to rq nodes."""

from __future__ import annotations

from tests.fuzz import rq

SEED = 20
INPUTS = 20_000


def test_whatever_nodes_send_the_broker_sends_only_valid_operations() -> None:
    outcomes = rq.FUZZER.run(INPUTS, SEED)
    assert sum(outcomes.values()) == INPUTS
    assert {"quiet", "PAYLOAD_TOO_LARGE", "OPERATION_WITHOUT_ID"} <= set(outcomes)


def test_the_fuzz_reaches_every_kind_of_fact_that_nodes_cause() -> None:
    """A driver too tame to cause a fact would prove nothing about it."""
    told: set[str] = set()
    for number in range(6):
        told |= rq.FUZZER.facts_of(SEED, number)
    assert told >= {
        "accepted", "leased", "delivered", "released", "closed", "worker_joined", "worker_left", "queue_named", "published", "late",
        "noted",
    }  # fmt: skip


def test_the_same_seed_gives_the_same_facts() -> None:
    assert rq.FUZZER.digest_of(7, 0) == rq.FUZZER.digest_of(7, 0)
