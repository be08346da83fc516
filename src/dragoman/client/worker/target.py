"""`module:app`: the App a worker works for, and the queues that makes it serve."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from dragoman.client import address
from dragoman.client.app import App
from dragoman.client.worker.settings import DEFAULT_WEIGHT, WorkerSettings
from dragoman.errors import BadTarget


def load(target: str, url: str) -> App:
    """Import the App; `url`, when given, replaces the broker's address in it. Raises BadTarget."""
    module_name, _, names = target.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise BadTarget(target, f"there is no module {error.name!r}") from None
        raise
    for name in (names or "app").split("."):
        found = getattr(found, name, None)
    if not isinstance(found, App):
        raise BadTarget(target, f"{names or 'app'!r} is not an App in {module_name!r}")
    if url:
        found.address = address.parse(url)
    return found


def queues_of(app: App, settings: WorkerSettings) -> tuple[tuple[int, str], ...]:
    """The queues asked for, else those of the App's jobs; none when it only has handlers."""
    if settings.queues:
        return settings.queues
    return tuple((DEFAULT_WEIGHT, name) for name in sorted({job.opts.queue for job in app.jobs.values()}))
