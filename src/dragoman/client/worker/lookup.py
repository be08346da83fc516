"""Finds the function that a request names. Only jobs of the App are run, unless the operator allowed more modules by name.

A request's names come from a peer, so they reach only what an allowed module itself defines:

    path "legacy.tasks"          callable "send"       a function (or class) of the module
    path "legacy.tasks:Mailer"   callable "send"       a method of an object made from a class of the module

- The module is an allowed one or inside an allowed package; no part of its path is private.
- A name is one public identifier: no dots, no leading underscore (except `__call__` of a class: EventMQ's form of a callable object).
- It is looked up in the module's own namespace and in the namespaces of the class and its bases: no `__getattr__` runs.
- The object's `__module__` must be an allowed module, and its `__qualname__` must be the name it was found under. So objects that the
  module merely imported (`os`, `from os import system as run`) or stores (a partial, an instance) cannot be reached.
- An allowed module or Python itself must define the constructor of a class: a subclass of `subprocess.Popen` without its own constructor
  is not instantiated.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import types
from collections.abc import Callable
from typing import Any, Final

from dragoman.client.body import PLAIN_END, PLAIN_MARK, Arguments, Run, decode_run
from dragoman.client.job import Job
from dragoman.errors import ClientError
from dragoman.limits import NAME_SHOWN_SIZE_MAX
from dragoman.printable import printable

Work = tuple[Callable[..., Any], list[Any], dict[str, Any], bool]

# What may be run: a Python function, one with a cache around it, a compiled one, or a class. Their attributes are read without side effects.
METHODS: Final = (types.FunctionType, functools._lru_cache_wrapper)
FUNCTIONS: Final = (*METHODS, types.BuiltinFunctionType, type)
CALL: Final = "__call__"


class UnknownJob(ClientError):
    """The request names no job of this worker's App, and nothing that the operator allowed."""

    code = "UNKNOWN_JOB"

    def __init__(self, path: str, name: str, problem: str) -> None:
        super().__init__(f"{printable(f'{path}:{name}', NAME_SHOWN_SIZE_MAX)} {problem}")


class Lookup:
    """Finds functions by path and name, and caches the imported ones."""

    def __init__(self, jobs: dict[tuple[str, str], Job[..., Any, Any]], allow_import: tuple[str, ...]) -> None:
        self._jobs = jobs
        self._allow_import = allow_import
        self._by_head = {job.arguments.head: job for job in jobs.values() if job.arguments.is_plain}
        self._imported: dict[tuple[str, str], tuple[Callable[..., Any], Arguments]] = {}

    def find(self, body: bytes) -> Work:
        """Return the function, its arguments, and whether it is a coroutine function. Raises for what cannot be run."""
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
        module, colon, class_name = run.path.partition(":")
        if not self._is_allowed(module):
            raise UnknownJob(run.path, run.callable, "is no job of this worker")
        if colon:
            return self._method(module, class_name, run)
        function, arguments = self._function(module, run)
        args, kwargs = arguments.decode(run)
        return function, args, kwargs, inspect.iscoroutinefunction(function)

    def _is_allowed(self, module: object) -> bool:
        """Whether a module is an allowed one, or inside an allowed package by a path without private parts."""
        if not isinstance(module, str):
            return False
        for prefix in self._allow_import:
            if module == prefix:
                return True
            if module.startswith(prefix + ".") and all(map(_is_public, module.removeprefix(prefix + ".").split("."))):
                return True
        return False

    def _function(self, module: str, run: Run) -> tuple[Callable[..., Any], Arguments]:
        known = self._imported.get((module, run.callable))
        if known is None:
            function = self._defined(module, run.callable, run)
            if isinstance(function, type):
                self._check_constructor(function, run)
            known = self._imported[module, run.callable] = (function, Arguments(function, module, run.callable))
        return known

    def _method(self, module: str, class_name: str, run: Run) -> Work:
        class_ = self._defined(module, class_name, run)
        if not isinstance(class_, type):
            raise UnknownJob(run.path, run.callable, "is not run: its path names no class")
        self._check_constructor(class_, run)
        definition = self._definition(class_, run)
        made = class_(*run.class_args, **run.class_kwargs)
        method = definition.__get__(made, class_)
        args, kwargs = Arguments(method, run.path, run.callable).decode(run)
        return method, args, kwargs, inspect.iscoroutinefunction(method)

    def _defined(self, module: str, name: str, run: Run) -> Callable[..., Any]:
        """The function or class that an allowed module defines at its top level under exactly this name."""
        if not _is_public(name):
            raise UnknownJob(run.path, run.callable, "is not run: a name is one public identifier")
        found: Any = vars(importlib.import_module(module)).get(name)
        if type(found) is Job:
            found = found.function
        self._check_home(found, name, FUNCTIONS, run)
        function: Callable[..., Any] = found
        return function

    def _definition(self, class_: type, run: Run) -> Any:
        """The function of a method, as its class defines it: the instance's own attributes are ignored."""
        name = run.callable
        if name != CALL and not _is_public(name):
            raise UnknownJob(run.path, name, "is not run: a name is one public identifier")
        for base in class_.__mro__:
            if name in vars(base):
                definition = vars(base)[name]
                function = definition.__func__ if isinstance(definition, staticmethod | classmethod) else definition
                self._check_home(function, f"{base.__qualname__}.{name}", METHODS, run)
                return definition
        raise UnknownJob(run.path, name, "is not run: its class has no such method")

    def _check_constructor(self, class_: type, run: Run) -> None:
        for name in ("__new__", "__init__"):
            base = next(base for base in class_.__mro__ if name in vars(base))
            if base.__module__ != "builtins" and not self._is_allowed(base.__module__):
                home = f"{base.__module__}.{base.__qualname__}"
                raise UnknownJob(run.path, run.callable, f"is not run: {home}, which makes its objects, is not allowed")

    def _check_home(self, found: object, qualname: str, kinds: tuple[type, ...], run: Run) -> None:
        if not issubclass(type(found), kinds):  # `isinstance` would trust the `__class__` of a proxy
            raise UnknownJob(run.path, run.callable, "is not run: no function or class of this name is defined there")
        if not self._is_allowed(found.__module__) or getattr(found, "__qualname__", "") != qualname:
            home = f"{found.__module__}.{getattr(found, '__qualname__', '?')}"
            text = f"is not run: it is {printable(home, NAME_SHOWN_SIZE_MAX)}, which is not defined under that name in an allowed module"
            raise UnknownJob(run.path, run.callable, f"{text} (a decorator should use functools.wraps)")


def _is_public(name: str) -> bool:
    return name.isidentifier() and not name.startswith("_")
