"""The short run of the fuzz driver; `make fuzz` has the long one."""

from __future__ import annotations

from tests.fuzz import zmtp

SEED = 20
INPUTS = 25_000


def test_only_documented_errors_come_out_of_the_zmtp_decoder_and_each_of_them_does() -> None:
    outcomes = zmtp.run(INPUTS, SEED)
    assert sum(outcomes.values()) == INPUTS
    # An error that no input reaches would mean that the driver, not the decoder, is too tame.
    assert set(outcomes) == {error.code for error in zmtp.DOCUMENTED} | {"quiet"}


def test_the_same_seed_gives_the_same_run() -> None:
    assert zmtp.run(300, 7) == zmtp.run(300, 7)
