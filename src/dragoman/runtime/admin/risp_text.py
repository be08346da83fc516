"""RISP as readable text: `CLEAR ID=7 QUEUE[4]=b'jobs' PAYLOAD[5]=b'hello' REQUEST`. For displaying traffic, not for serving it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dragoman.wire.risp import commands

TEXT_SHOWN_MAX: Final = 60
NUMBER_SIZES: Final = (
    0,
    0,
    1,
    2,
    4,
    1,
    2,
    4,
)  # bytes of a number, or of a text's length, by a command's top three bits
NAMES: Final = {
    getattr(commands, name): name
    for name in (
        "NOP", "CLEAR", "PING", "PONG", "REQUEST", "REPLY", "DELIVERED", "BROADCAST", "UNDELIVERED", "CONSUME",
        "CANCEL_QUEUE", "CLOSING", "SERVER_FULL", "CONSUMING", "EXCLUSIVE", "NOREPLY", "PRIORITY", "RETRIES", "QUEUEID",
        "TIMEOUT", "MAX", "ID", "QUEUE", "PAYLOAD",
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """One command byte with its value; `at` is the offset of the value in the parsed bytes."""

    command: int
    value: int | bytes | None
    at: int
    size: int

    @property
    def name(self) -> str:
        return NAMES.get(self.command, f"COMMAND_{self.command}")

    @property
    def acts(self) -> bool:
        return self.command < commands.FLAGS and self.command not in (commands.CLEAR, commands.NOP)

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        if isinstance(self.value, int):
            return f"{self.name}={self.value}"
        shown = self.value[:TEXT_SHOWN_MAX]
        return f"{self.name}[{len(self.value)}]={shown!r}{'…' if len(shown) < len(self.value) else ''}"


def items_of(data: bytes) -> tuple[list[Item], bytes]:
    """The commands in the bytes, and the rest: an incomplete command."""
    items: list[Item] = []
    at = 0
    while at < len(data):
        command, start = data[at], at + 1
        size = NUMBER_SIZES[command >> 5]
        number = int.from_bytes(data[start : start + size], "big")
        value: int | bytes | None = number if size else None
        if command >= commands.TINY_TEXTS:
            start, size = start + size, number
            value = data[start : start + size]
        if start + size > len(data):
            break
        items.append(Item(command, value, start, size))
        at = start + size
    return items, data[at:]


def text_of(data: bytes) -> str:
    items, rest = items_of(data)
    return " ".join([*map(str, items), *([f"…{len(rest)} bytes of one cut short"] if rest else [])])
