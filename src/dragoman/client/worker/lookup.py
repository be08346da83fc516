"""From a request to the function it means. Only jobs of the App are run, unless the operator allowed more modules by name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from dragoman.client.body import PLAIN_END, PLAIN_MARK, Arguments, Run, decode_run
from dragoman.client.job import Job
from dragoman.errors import ClientError

Work = tuple[Callable[..., Any], list[Any], dict[str, Any], bool]


class UnknownJob(ClientError):
    """The request names no job of this worker's App."""

    code = "UNKNOWN_JOB"


class Lookup:
    """Finds functions by path and name, and remembers the ones it imported."""

    def __init__(self, jobs: dict[tuple[str, str], Job[..., Any, Any]], allow_import: tuple[str, ...]) -> None:
        self._jobs = jobs
        self._allow_import = allow_import
        self._by_head = {job.arguments.head: job for job in jobs.values() if job.arguments.is_plain}
        self._imported: dict[tuple[str, str], tuple[Callable[..., Any], Arguments]] = {}

    def find(self, body: bytes) -> Work:
        """The function, its arguments, and whether it is a coroutine function. Raises for what cannot be run."""
        mark_at = body.find(PLAIN_MARK)
        if mark_at > 0 and body.endswith(PLAIN_END):
            job = self._by_head.get(body[:mark_at])
            if job is not None:
                return job.function, [], job.arguments.decode_plain(body, mark_at + len(PLAIN_MARK)), job.is_async
        return self._find_run(decode_run(body))

    def _find_run(self, run: Run) -> Work:
        job = self._jobs.get((run.path, run.callable))
        if job is not None:
            args, kwargs = job.arguments.decode(run)
            return job.function, args, kwargs, job.is_async
        module, _, class_name = run.path.partition(":")
        if not self._is_allowed(module):
            raise UnknownJob(f"{run.path}:{run.callable} is no job of this worker")
        if class_name:
            return self._method(module, class_name, run)
        function, arguments = self._function(module, run.callable)
        args, kwargs = arguments.decode(run)
        return function, args, kwargs, inspect.iscoroutinefunction(function)

    def _is_allowed(self, module: str) -> bool:
        return any(module == prefix or module.startswith(prefix + ".") for prefix in self._allow_import)

    def _function(self, module: str, name: str) -> tuple[Callable[..., Any], Arguments]:
        known = self._imported.get((module, name))
        if known is None:
            function = _attribute(module, name)
            function = function.function if isinstance(function, Job) else function
            known = self._imported[module, name] = (function, Arguments(function, module, name))
        return known

    def _method(self, module: str, class_name: str, run: Run) -> Work:
        made = _attribute(module, class_name)(*run.class_args, **run.class_kwargs)
        method = getattr(made, _public(run.callable))
        args, kwargs = Arguments(method, run.path, run.callable).decode(run)
        return method, args, kwargs, inspect.iscoroutinefunction(method)


def _attribute(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, _public(part))
    return found


def _public(name: str) -> str:
    if name.startswith("_"):
        raise UnknownJob(f"{name} is private")
    return name
