"""How many work at a queue: as many as its busiest ordinary hour needs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from dragoman.testing.generate.services import Service

WORKERS_MAX: Final = 40
SLOWER_MAX: Final = 4.0
SLOWNESS: Final = 1.25  # of the mean worker: see crew
BATCH_MEAN: Final = 44  # messages: see clients


def staffed(service: Service, peak: float) -> tuple[Service, int]:
    """The queue with as many workers as `peak` messages a second need; none where nobody serves it.

    Where too many would be needed, the work is quicker instead; where the fewest (one of each dialect) would stand idle, slower.
    """
    if not service.workers:
        return service, 0
    mean_s = service.work_s * math.exp(service.spread**2 / 2)
    needed = peak * (1 + service.is_batched * BATCH_MEAN) * mean_s * SLOWNESS / (service.slots * service.busy)
    fewest = len(service.workers) + 1
    factor = min(WORKERS_MAX / needed, max(fewest / needed, 1.0), SLOWER_MAX)
    count = min(max(math.ceil(needed * factor), fewest), WORKERS_MAX)
    return replace(service, work_s=service.work_s * factor, timeout_s=service.timeout_s * factor), count
