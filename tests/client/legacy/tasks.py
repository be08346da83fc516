"""A module as users of EventMQ have them: functions, classes, and all that it imported for itself."""

from __future__ import annotations

import functools
import os
import subprocess
from builtins import eval as evaluate
from dataclasses import dataclass
from os import system
from os import system as run_command
from typing import Any

from dragoman import App
from tests.client.legacy import elsewhere
from tests.client.legacy.elsewhere import Maker, called, unwrapped, wrapped

app = App("emqp://127.0.0.1")
looked_up: list[str] = []
in_shell = functools.partial(subprocess.check_output, shell=True)
shout = str.upper
nothing = None


def __getattr__(name: str) -> Any:
    looked_up.append(name)
    return os.system


def send(to: str) -> str:
    return f"sent to {to}"


async def send_later(to: str) -> str:
    return f"sent to {to} later"


sent_again = send


@app.job(queue="other")
def another_apps_job(to: str) -> str:
    return f"sent to {to} by another App's job"


@wrapped
def decorated(to: str) -> str:
    return f"sent to {to} through a decorator"


@functools.lru_cache
def cached(to: str) -> str:
    return f"sent to {to} once"


@unwrapped
def disguised(to: str) -> str:
    return f"sent to {to} without a name"


def _private() -> str:
    return "reached"


class Proxy:
    """Claims to be a function, and answers to every name."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(send)

    def __getattr__(self, name: str) -> Any:
        looked_up.append(name)
        return {"__module__": __name__, "__qualname__": "proxy"}.get(name, os.system)

    def __call__(self, *args: Any) -> str:
        return "reached"


proxy = Proxy()


class Base:
    def inherited(self) -> str:
        return "from the base"


class Till(Base):
    aliased = os.system
    foreign = called
    static_foreign = staticmethod(subprocess.call)
    partial = functools.partialmethod(Base.inherited)

    def __init__(self, start: int = 0) -> None:
        self.sum = start
        self.assigned = os.system

    def put(self, coins: int) -> int:
        return self.sum + coins

    async def put_later(self, coins: int) -> int:
        return self.sum + coins

    def __call__(self, coins: int) -> int:
        return self.sum - coins

    @staticmethod
    def of_none(coins: int) -> int:
        return coins

    @classmethod
    def of_class(cls, coins: int) -> str:
        return f"{cls.__name__} {coins}"

    @property
    def computed(self) -> Any:
        return os.system

    def __getattr__(self, name: str) -> Any:
        looked_up.append(name)
        return os.system

    def _hidden(self) -> str:
        return "reached"

    class Inner:
        def put(self) -> str:
            return "reached"


@dataclass
class Parcel:
    grams: int

    def postage(self, rate: int) -> int:
        return self.grams * rate


class Runner(subprocess.Popen):  # type: ignore[type-arg]
    def put(self) -> str:
        return "reached"


class Made(Maker):
    def put(self) -> str:
        return "reached"


class OwnConstructor(Maker):
    def __init__(self) -> None:
        super().__init__()

    def put(self) -> str:
        return "made"


class Bag(dict[str, int]):
    def total(self) -> int:
        return sum(self.values())


__all__ = ["called", "elsewhere", "evaluate", "run_command", "system"]
