"""Detects clients of the wrong protocol by a connection's first bytes: an HTTP request or a TLS hello.

    HTTP   method SP target    a method is letters, then letters, digits, `-` or `_`; a target begins with `/`, `*` or `http`,
                               or with anything after CONNECT. `PRI * HTTP/2.0` opens HTTP/2
    TLS    16 03               a handshake record of any version

A web page can make a browser send such bytes to any port, followed by a body of its choice, so the broker refuses them before it reads
anything after them. ZMTP 2.0 and 3.x begin with 0xFF. The second byte of a ZMTP 1.0 greeting is a frame's flags, which are never a
letter, a digit, `-`, `_`, a space or 3. So no ZMTP stream is mistaken for HTTP or TLS; RISP has its own check (`risp.words`).
"""

from __future__ import annotations

import string
from typing import Final

from dragoman.errors import HttpNotSpoken, TlsNotSpoken

UNDECIDED: Final = 0  # more bytes are needed
HTTP: Final = 1
TLS: Final = 2
NEITHER: Final = 3

# The longest registered method has 17 letters. The check never needs more bytes than a method, a space and `http`.
METHOD_SIZE_MAX: Final = 32
TLS_HANDSHAKE: Final = 0x16
TLS_MAJOR: Final = 3
SPACE: Final = 0x20
LETTERS: Final = string.ascii_letters.encode()
METHOD_BYTES: Final = LETTERS + b"0123456789-_"


def judge(received: bytes) -> int:
    """Classify the first bytes of a stream as one of the four constants above."""
    if not received:
        return UNDECIDED
    if received[0] == TLS_HANDSHAKE:
        if len(received) == 1:
            return UNDECIDED
        return TLS if received[1] == TLS_MAJOR else NEITHER
    if received[0] not in LETTERS:
        return NEITHER
    at = 1
    while at < len(received) and at <= METHOD_SIZE_MAX and received[at] in METHOD_BYTES:
        at += 1
    if at > METHOD_SIZE_MAX:
        return NEITHER
    if at == len(received):
        return UNDECIDED
    if received[at] != SPACE:
        return NEITHER
    return judge_target(received[:at].upper(), received[at + 1 : at + 5].lower())


def judge_target(method: bytes, target: bytes) -> int:
    """Classify by method and target; `target` has at most four bytes."""
    if not target:
        return UNDECIDED
    if target[:1] == b"/" or target[:1] == b"*" or method == b"CONNECT" or target == b"http":
        return HTTP
    return UNDECIDED if b"http".startswith(target) else NEITHER


def refuse(kind: int) -> None:
    """Raise the error for a stream of that kind; return for UNDECIDED and NEITHER."""
    if kind == HTTP:
        raise HttpNotSpoken
    if kind == TLS:
        raise TlsNotSpoken
