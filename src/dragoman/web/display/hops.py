"""The protocol frames of each hop of a message, in the dialect of that hop. They are reconstructed from the facts, which keep everything
but the bodies of replies. docs/reference has a page for each dialect; the frames here are those of its tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dragoman.model.message import in_own_shape

Frame = tuple[str, str]  # name, content
Fact = dict[str, Any]

EMQP_VERSION: Final = "eMQP/1.0"
BODY: Final = "body"
UNKNOWN_ID: Final = "(an id of the broker's own)"


def asked(fact: Fact, queue: str) -> list[Frame]:
    """Frames that the client sent; empty if the broker itself created the message."""
    make = CLIENTS.get(fact["dialect"])
    return make(fact, queue, fact["client_id"]) if make is not None else []


def told(fact: Fact, queue: str, worker_dialect: str, digits: str) -> list[Frame]:
    """Frames that a worker of that dialect receives with the message; `digits` is the broker's own message id in digits."""
    make = WORKERS.get(worker_dialect)
    return make(fact, queue, wire_id(fact, worker_dialect, digits)) if make is not None else []


def answered(worker_dialect: str, reply_size: int) -> list[Frame]:
    words = ANSWERS.get(worker_dialect)
    return [("command", words), ("answer", f"({reply_size} bytes, not kept)")] if words is not None else []


def wire_id(fact: Fact, worker_dialect: str, digits: str) -> str:
    """The message id sent to a worker: the client's own where that is safe, else the broker's, made from its digits."""
    if worker_dialect == "emqp" and fact["dialect"] == "emqp" and fact["client_id"]:
        return str(fact["client_id"])
    if not digits:
        return UNKNOWN_ID
    if worker_dialect == "scale0":
        return f"{digits}.….{fact['client_id']}"
    return in_own_shape(digits.encode()).decode() if worker_dialect == "emqp" else digits


def _body(fact: Fact) -> Frame:
    return BODY, f"({fact['body_size']} bytes)"


def _emqp(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [
        ("", ""),
        ("version", EMQP_VERSION),
        ("command", "REQUEST"),
        ("message id", message_id),
        ("queue", queue),
        ("headers", fact.get("headers", "(the lake keeps none)")),
        _body(fact),
    ]


def _scale0(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [("command", "TASK"), ("header", f'{{"id": "{message_id}", "service": "{queue}"}}'), _body(fact)]


def _pingpong(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [("", ""), _body(fact)]


def _ebus_client(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [("", ""), ("version", "EBC01"), ("command", "REQ"), ("service", queue), ("rid", message_id), _body(fact)]


def _ebus_worker(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [("version", "EBC01"), ("command", "REQ"), ("rid", message_id), _body(fact)]


def _rq_client(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [("ID", message_id), ("QUEUE", queue), ("PAYLOAD", _body(fact)[1]), *_rq_flags(fact), ("acts", "REQUEST")]


def _rq_worker(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [
        ("QUEUEID", f"(the consumer's number of {queue})"),
        ("PAYLOAD", _body(fact)[1]),
        *_rq_flags(fact),
        ("ID", "(the consumer's own)"),
        ("acts", "REQUEST"),
    ]


def _rq_flags(fact: Fact) -> list[Frame]:
    return [] if "reply_wanted" in fact["flags"] else [("NOREPLY", "")]


CLIENTS: Final[dict[str, Callable[[Fact, str, str], list[Frame]]]] = {
    "emqp": _emqp,
    "scale0": _scale0,
    "pingpong": _pingpong,
    "ebus": _ebus_client,
    "rq": _rq_client,
}
WORKERS: Final[dict[str, Callable[[Fact, str, str], list[Frame]]]] = {
    "emqp": _emqp,
    "scale0": _scale0,
    "pingpong": _pingpong,
    "ebus": _ebus_worker,
    "rq": _rq_worker,
}
ANSWERS: Final = {"emqp": "REPLY", "scale0": "TASKREPLY", "pingpong": "result", "ebus": "REPLY", "rq": "REPLY"}
