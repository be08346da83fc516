"""Operations for the rq fuzz: mostly what nodes say, some of it never said by any, and bytes that are no operation at all."""

from __future__ import annotations

import random

from dragoman.wire.risp.writer import id_bytes

QUEUES = [b"a", b"a", b"b", b"c"]
MINE = b"job/"  # begins every orderly body; the node's number and its own id follow
ANSWER = b"re:" + MINE  # begins every orderly answer to one
ACTING = [0, 1, 5, 6, 10, 11, 13, 14, 16, 20, 21, 22, 23, 24, 31]


def text(command: int, data: bytes) -> bytes:
    size = {160: 1, 192: 2, 224: 4}[command & 0xE0]
    return bytes([command]) + len(data).to_bytes(size, "big") + data


def a_consume(chance: random.Random) -> bytes:
    fields = [text(160, chance.choice(QUEUES))]
    if chance.random() < 0.7:
        fields.append(b"\x62" + chance.choice([0, 1, 2, 5, 65535]).to_bytes(2, "big"))
    if chance.random() < 0.5:
        fields.append(bytes([64, chance.choice([0, 10, 20, 30, 255])]))
    if chance.random() < 0.1:
        fields.append(b"\x20")
    return b"\x01" + b"".join(fields) + b"\x14"


def an_operation(chance: random.Random, node: int, unanswered: dict[int, tuple[bytes, bool]]) -> bytes:
    """What a node says next; mostly it asks, or answers what it has."""
    draw = chance.random()
    if unanswered and draw < 0.5:
        return an_answer(chance, unanswered)
    if draw < 0.82:
        return a_request(chance, node)
    if draw < 0.88:
        return b"\x01" + text(160, chance.choice(QUEUES)) + text(224, b"news") + b"\x0e"
    if draw < 0.91:
        return a_consume(chance)
    if draw < 0.93:
        queue = text(160, chance.choice(QUEUES)) if chance.random() < 0.7 else bytes([96, 0, chance.randrange(4)])
        return b"\x01" + queue + b"\x15"
    if draw < 0.95:
        word = chance.choice([b"\x0d", b"\x10", text(224, b"rubbish") + b"\x0b"])
        return b"\x01\x80" + id_bytes(chance.choice([0, 1, 7, 1000, 0xFFFFFFFF])) + word
    if draw < 0.99:
        return chance.choice([b"\x05", b"\x06", b"\x00"])
    return b"\x16"


def a_request(chance: random.Random, node: int) -> bytes:
    number = chance.choice([*range(8), 0x80000000, 0xFFFFFFFF])
    body = b"%s%d/%d/%s" % (MINE, node, number, b"x" * chance.choice([0, 5, 50, 300]))
    if chance.random() < 0.03:
        body = b""
    fields = [b"\x80" + id_bytes(number), text(160, chance.choice(QUEUES)), text(224, body)]
    if chance.random() < 0.25:
        fields.append(b"\x21")
    if chance.random() < 0.3:
        fields.append(bytes([65, chance.choice([0, 1, 5])]))
    if chance.random() < 0.3:
        fields.append(b"\x61" + chance.choice([0, 1, 2, 60]).to_bytes(2, "big"))
    if chance.random() < 0.1:
        chance.shuffle(fields)
        fields.insert(chance.randrange(len(fields)), text(chance.choice([170, 200, 230]), b"unknown"))
    return b"\x01" + b"".join(fields) + b"\x0a"


def an_answer(chance: random.Random, unanswered: dict[int, tuple[bytes, bool]]) -> bytes:
    number = chance.choice(list(unanswered))
    body, _ = unanswered[number]
    draw = chance.random()
    head = b"\x01\x80" + id_bytes(number)
    if draw < 0.35:
        return head + b"\x0d"
    if draw < 0.45:
        return head + b"\x10"
    if draw < 0.48:
        return head + b"\x0b"
    return head + text(224, b"re:" + body) + b"\x0b"


def spoilt_bytes(chance: random.Random, data: bytes) -> bytes:
    """Bytes with something changed, cut or added; or others altogether. None of them looks like an orderly answer."""
    data = disowned(data)
    draw = chance.random()
    at = chance.randrange(len(data))
    if draw < 0.3:
        return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
    if draw < 0.5:
        return data[:at] + data[at + 1 :]
    if draw < 0.7:
        return data + bytes(chance.choices(ACTING, k=chance.randrange(1, 6)))
    if draw < 0.8:
        return data[:at]
    if draw < 0.9:
        return b"\x01\x80\0\0\0\x01\xe0" + chance.choice([b"\0\0\x13\x88", b"\0\0\x13\x89", b"\xff\xff\xff\xff"]) + data
    return chance.randbytes(chance.randrange(1, 60))


def disowned(data: bytes) -> bytes:
    """The same without the mark of an orderly answer, in as many bytes."""
    return data.replace(ANSWER, b"spoilt/")
