"""RISP as readable text: `CLEAR ID=7 QUEUE[4]=b'jobs' PAYLOAD[5]=b'hello' REQUEST`. For displaying traffic, not for serving it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dragoman.wire.risp import words

TEXT_SHOWN_MAX: Final = 60
NAMES: Final = {
    getattr(words, name): name
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
        return self.command < words.FLAGS and self.command not in (words.CLEAR, words.NOP)

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
        command = data[at]
        size = value_size(data, at)
        if size is None:
            break
        head, length = size
        if at + head + length > len(data):
            break
        if command < words.BYTES:
            items.append(Item(command, None, at + 1, 0))
        elif command < words.TINY_TEXTS:
            items.append(Item(command, int.from_bytes(data[at + 1 : at + 1 + length], "big"), at + 1, length))
        else:
            items.append(Item(command, data[at + head : at + head + length], at + head, length))
        at += head + length
    return items, data[at:]


def value_size(data: bytes, at: int) -> tuple[int, int] | None:
    """(bytes before the value, bytes of the value) of the command at `at`; None when its length is not complete."""
    command = data[at]
    if command < words.BYTES:
        return 1, 0
    if command < words.TINY_TEXTS:
        return 1, 1 if command < words.SHORTS else 2 if command < words.LONGS else 4
    length_size = 1 if command < words.SHORT_TEXTS else 2 if command < words.LONG_TEXTS else 4
    if at + 1 + length_size > len(data):
        return None
    return 1 + length_size, int.from_bytes(data[at + 1 : at + 1 + length_size], "big")


def text_of(data: bytes) -> str:
    items, rest = items_of(data)
    words_ = [str(item) for item in items]
    if rest:
        words_.append(f"…{len(rest)} bytes of one cut short")
    return " ".join(words_)
