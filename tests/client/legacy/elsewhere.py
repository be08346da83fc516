"""A module that no worker in the tests is allowed to import."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def called(*args: Any) -> str:
    return "reached"


class Maker:
    """Its constructor and its method are not defined in an allowed module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args

    def inherited(self) -> str:
        return "reached"


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


def unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner
