"""Many trials on all cores."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.damage.specimens import Journals
from tests.damage.trial import Sound, Verdict, look_at, try_one

CHUNK = 20  # trials handed to a process at a time


@dataclass(frozen=True)
class Trials:
    """What every trial begins with."""

    sounds: list[Sound]
    foreign: bytes

    def run(self, seed: int) -> Verdict:
        return try_one(self.sounds, self.foreign, seed)


def trials_of(journals: Journals) -> Trials:
    return Trials([look_at(specimen) for specimen in journals.specimens], journals.foreign)


def run(
    trials: Trials, seeds: Iterable[int], processes: int = os.cpu_count() or 1
) -> tuple[Counter[str], list[Verdict]]:
    """Outcomes by name, and the trials that went wrong."""
    outcomes: Counter[str] = Counter()
    wrong: list[Verdict] = []
    with multiprocessing.get_context("fork").Pool(processes, _begin, (trials,)) as pool:
        for verdict in pool.imap_unordered(_try_one, seeds, CHUNK):
            outcomes[verdict.outcome] += 1
            if verdict.wrong:
                wrong.append(verdict)
    return outcomes, wrong


_trials: list[Trials] = []  # of this process: journals are too large to be sent along with every seed


def _begin(trials: Trials) -> None:
    _trials[:] = [trials]


def _try_one(seed: int) -> Verdict:
    return _trials[0].run(seed)
