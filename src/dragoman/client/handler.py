"""Functions that hear news: what `app.on(prefix)` makes of them."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

H = TypeVar("H", bound=Callable[..., Any])


class Handler:
    """A function for a topic prefix. Its body parameter is decoded to its annotation; `bytes` gets the body as it came."""

    def __init__(self, prefix: str, function: Callable[..., Any]) -> None:
        self.prefix = prefix.encode()
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        names = list(inspect.signature(function).parameters)
        if len(names) not in (1, 2):
            raise TypeError(f"{function.__qualname__} must take (body) or (topic, body), not {len(names)} parameters")
        self.takes_topic = len(names) == 2
        try:
            wanted = typing.get_type_hints(function).get(names[-1], Any)
        except (NameError, TypeError):
            wanted = Any
        self._decode = bytes if wanted is bytes else msgspec.json.Decoder(wanted).decode

    def arguments(self, topic: bytes, body: bytes) -> list[Any]:
        """What to call the function with; raises msgspec.DecodeError."""
        value = self._decode(body)
        return [topic.decode("utf-8", "replace"), value] if self.takes_topic else [value]


class Handles:
    """The decorator `app.on(…)` returns; the function stays what it was."""

    def __init__(self, handlers: list[Handler], prefix: str) -> None:
        self._handlers = handlers
        self._prefix = prefix

    def __call__(self, function: H) -> H:
        self._handlers.append(Handler(self._prefix, function))
        return function
