"""How much a run of the suite tries: the examples of each state machine, and the same part of every other counted run.

`make quick` and the plain-Python part of `make test` ask for a quarter, `make machines` for hundreds of times as much.
"""

from __future__ import annotations

import os

VARIABLE = "DRAGOMAN_TEST_EXAMPLES"
USUAL = 60
EXAMPLES = int(os.environ.get(VARIABLE, USUAL))


def at_most(count: int) -> int:
    """Of so many seeds, as many as this run tries: all of them, unless it asks for less than usual."""
    return max(1, min(count, count * EXAMPLES // USUAL))
