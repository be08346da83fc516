"""The protocol frames of each hop of a message, in the dialect of that hop. They are reconstructed from the facts, which keep everything
but the bodies of replies. docs/reference has a page for each dialect; the frames in its description are those of its tables."""

from __future__ import annotations

from dragoman.dialects.description import Fact, Frame
from dragoman.dialects.registry import DIALECTS_BY_NAME


def asked(fact: Fact, queue: str) -> list[Frame]:
    """Frames that the client sent; empty if the broker itself created the message."""
    described = DIALECTS_BY_NAME.get(fact["dialect"])
    return described.client_frames(fact, queue, fact["client_id"]) if described is not None else []


def told(fact: Fact, queue: str, worker_dialect: str, digits: str) -> list[Frame]:
    """Frames that a worker of that dialect receives with the message; `digits` is the broker's own message id in digits."""
    described = DIALECTS_BY_NAME.get(worker_dialect)
    return described.worker_frames(fact, queue, described.worker_id(fact, digits)) if described is not None else []


def answered(worker_dialect: str, reply_size: int) -> list[Frame]:
    described = DIALECTS_BY_NAME.get(worker_dialect)
    if described is None:
        return []
    return [("command", described.answer_word), ("answer", f"({reply_size} bytes, not kept)")]
