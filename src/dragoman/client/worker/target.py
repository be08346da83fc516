"""`module:app`: the App of a worker, and the queues it serves."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import TracebackType

from dragoman.client import address
from dragoman.client.app import App
from dragoman.client.features import check_prefixes, queue_at
from dragoman.client.worker import DEFAULT_WEIGHT, WorkerSettings
from dragoman.errors import BadTarget
from dragoman.printable import error_text, traceback_text


def load(target: str, url: str) -> App:
    """Import the App; `url`, if given, replaces the broker's address in it. Raises BadTarget."""
    module_name, _, names = target.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module_name)
    except Exception as error:  # any exception of the user's module; the traceback begins with the module's own frames
        name = error.name if isinstance(error, ModuleNotFoundError) else None
        if name is not None and (module_name == name or module_name.startswith(name + ".")):
            raise BadTarget(target, f"there is no module {name!r}") from None
        sys.stderr.write(traceback_text(error.with_traceback(_own_frames(error.__traceback__))) + "\n")
        raise BadTarget(
            target, f"importing {module_name!r} failed with {type(error).__name__}: {error_text(error)}"
        ) from None
    for name in (names or "app").split("."):
        found = getattr(found, name, None)
    if not isinstance(found, App):
        raise BadTarget(target, f"{names or 'app'!r} is not an App in {module_name!r}")
    if url:
        found.address = address.parse(url)
    return found


def _own_frames(frames: TracebackType | None) -> TracebackType | None:
    """The traceback without our own frame and those of the import machinery at its beginning."""
    while frames is not None and (
        frames.tb_frame.f_code.co_filename in (__file__, importlib.__file__)
        or frames.tb_frame.f_code.co_filename.startswith("<frozen importlib")
    ):
        frames = frames.tb_next
    return frames


def check(app: App, settings: WorkerSettings) -> None:
    """Raise NotInDialect when the App's dialect does not have a queue to serve, or news for its handlers."""
    for _, name in queues_of(app, settings):
        queue_at(app.address, name)
    if app.handlers:
        check_prefixes(app.address, [handler.prefix.decode() for handler in app.handlers])


def queues_of(app: App, settings: WorkerSettings) -> tuple[tuple[int, str], ...]:
    """The queues in the settings, else those of the App's jobs; empty when the App only has handlers."""
    if settings.queues:
        return settings.queues
    return tuple((DEFAULT_WEIGHT, name) for name in sorted({job.opts.queue for job in app.jobs.values()}))
