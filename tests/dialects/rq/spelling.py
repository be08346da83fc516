"""RISP bytes spelt out, by a decoder of the tests' own: `CLEAR ID=5 QUEUE=q PAYLOAD=r REQUEST`, as the recordings write them."""

from __future__ import annotations

WORDS = {
    0: "NOP", 1: "CLEAR", 5: "PING", 6: "PONG", 10: "REQUEST", 11: "REPLY", 13: "DELIVERED", 14: "BROADCAST", 16: "UNDELIVERED",
    20: "CONSUME", 21: "CANCEL_QUEUE", 22: "CLOSING", 23: "SERVER_FULL", 24: "CONSUMING", 32: "EXCLUSIVE", 33: "NOREPLY",
    64: "PRIORITY", 65: "RETRIES", 96: "QUEUEID", 97: "TIMEOUT", 98: "MAX", 128: "ID", 160: "QUEUE", 224: "PAYLOAD",
}  # fmt: skip
NUMBERS = {word: number for number, word in WORDS.items()}
NUMBER_SIZES = {64: 1, 96: 2, 128: 4}
LENGTH_SIZES = {160: 1, 192: 2, 224: 4}


def next_operation(data: bytes) -> tuple[str, int] | None:
    """The first operation in some bytes up to its acting command and without CLEAR, and where it ends; None when it is cut short."""
    found = next_words(data)
    return None if found is None else (" ".join(found[0]), found[1])


def next_words(data: bytes) -> tuple[list[str], int] | None:
    """The same as one text per command."""
    words: list[str] = []
    at = 0
    while at < len(data):
        command = data[at]
        group = command & 0xE0
        word = WORDS.get(command, str(command))
        at += 1
        if group == 0 and command != 1:
            return [*words, word], at
        if group in NUMBER_SIZES:
            stop = at + NUMBER_SIZES[group]
            words.append(f"{word}={int.from_bytes(data[at:stop], 'big')}")
            at = stop
        elif group in LENGTH_SIZES:
            text_at = at + LENGTH_SIZES[group]
            at = text_at + int.from_bytes(data[at:text_at], "big")
            words.append(f"{word}={data[text_at:at].decode('latin-1')}")
        elif command == 1:
            words = []
        else:
            words.append(word)
    return None


def spelt(data: bytes) -> list[str]:
    """The operations in some bytes; fails on one that is cut short."""
    operations: list[str] = []
    while data:
        found = next_operation(data)
        assert found is not None, f"cut short: {data!r}"
        operations.append(found[0])
        data = data[found[1] :]
    return operations


def risp(text: str) -> bytes:
    """Bytes from their spelling; a text's value runs to the next space."""
    out = b""
    for item in text.split(" "):
        word, _, value = item.partition("=")
        command = NUMBERS.get(word)
        if command is None:
            command = int(word)
        group = command & 0xE0
        out += bytes([command])
        if group in NUMBER_SIZES:
            out += int(value).to_bytes(NUMBER_SIZES[group], "big")
        elif group in LENGTH_SIZES:
            data = value.encode("latin-1")
            out += len(data).to_bytes(LENGTH_SIZES[group], "big") + data
    return out
