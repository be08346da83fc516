"""Every dialect: a new one is one line in MODULES. A dialect outside this package is named in the environment instead:

    DRAGOMAN_DIALECTS=lines.description,other.description      modules with a `DESCRIPTION`, separated by commas

Broker, SDK, command line and simulator read it alike, and a broker's child processes inherit it.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Final, final

from dragoman.dialects.contract import Dialect
from dragoman.dialects.description import ZMTP, DialectDescription, ListenerDescription
from dragoman.dialects.session import Outboxes, Session
from dragoman.errors import ConfigError
from dragoman.model.enums import name_dialect
from dragoman.model.peer import ANONYMOUS

# In the order of their numbers.
MODULES: Final = [
    "dragoman.dialects.scale0.description",
    "dragoman.dialects.pingpong.description",
    "dragoman.dialects.emqp.description",
    "dragoman.dialects.ebus.description",
    "dragoman.dialects.rq.description",
]
FURTHER: Final = "DRAGOMAN_DIALECTS"
# Names in the settings that are no dialect's, and `internal`, the dialect of messages that the broker itself makes.
SECTIONS: Final = ["drain", "limits", "listen", "log", "otel", "queues", "schedules", "security", "web", "workers"]
RESERVED: Final = [*SECTIONS, "data", "http", "internal", "journal", "lake"]

DESCRIPTIONS: Final[list[DialectDescription]] = []
DIALECTS_BY_NAME: Final[dict[str, DialectDescription]] = {}
LISTENERS_BY_NAME: Final[dict[str, ListenerDescription]] = {}


def register(description: DialectDescription) -> None:
    """Raises ValueError where it contradicts another dialect: its numbers are stored for good, so a clash cannot be settled by order."""
    name = description.name
    if name in DIALECTS_BY_NAME:
        raise ValueError(f"there are two dialects named {name}")
    if name in RESERVED:
        raise ValueError(f"{name} is the name of something else in the settings")
    listeners = dict(LISTENERS_BY_NAME)
    for listener in description.listeners:
        if not 0 < listener.number < ANONYMOUS or listener.name.partition(".")[0] != name:
            raise ValueError(f"{name} cannot have a listener {listener.name} with the number {listener.number}")
        for other in listeners.values():
            if listener.number == other.number or listener.name == other.name:
                raise ValueError(f"the listeners {listener.name} and {other.name} have the same name or number")
        listeners[listener.name] = listener
    name_dialect(description.number, name)
    LISTENERS_BY_NAME.update(listeners)
    DIALECTS_BY_NAME[name] = description
    DESCRIPTIONS.append(description)


def wire_of(listener: str) -> int:
    """The bytes of a listener: ZMTP, RISP or TEXT; those of one that is not known here are shown as messages."""
    described = LISTENERS_BY_NAME.get(listener)
    return described.wire if described is not None else ZMTP


def register_all() -> None:
    for module in MODULES:
        register(importlib.import_module(module).DESCRIPTION)
    for text in os.environ.get(FURTHER, "").split(","):
        module = text.strip()
        if module:
            try:
                register(importlib.import_module(module).DESCRIPTION)
            except (ImportError, AttributeError, ValueError) as error:
                problem = f"{module} describes no dialect that can be added: {error}"
                raise ConfigError("dialects", f"environment variable {FURTHER}", problem) from error


register_all()


@final
class Dialects:
    """One instance of each dialect, for one broker: `dialects.rq`, or all in their order."""

    def __init__(self, outboxes: Outboxes, id_seed: bytes) -> None:
        self.all: list[Dialect] = []
        self.by_name: dict[str, Dialect] = {}
        self.sides: dict[str, Any] = {}  # the module `sessions` of each dialect
        for description in DESCRIPTIONS:
            side: Any = importlib.import_module(description.package + ".sessions")
            dialect: Dialect = side.new_dialect(outboxes, id_seed)
            self.sides[description.name] = side
            self.by_name[description.name] = dialect
            self.all.append(dialect)

    def __getattr__(self, name: str) -> Any:
        dialect = self.by_name.get(name)
        if dialect is None:
            raise AttributeError(name)
        return dialect

    def of(self, listener: str) -> Dialect:
        """The dialect of a listener."""
        return self.by_name[listener.partition(".")[0]]

    def session(self, listener: str) -> Session:
        """Create the session of a new connection: a peer's to a listener, or one that the broker itself opened."""
        name = listener.partition(".")[0]
        session: Session = self.sides[name].new_session(
            self.by_name[name], listener, LISTENERS_BY_NAME[listener].number
        )
        return session
