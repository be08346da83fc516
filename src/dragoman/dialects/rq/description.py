"""RQ as the rest of the program knows it."""

from __future__ import annotations

from typing import Final

from dragoman.dialects import description, features
from dragoman.dialects.description import RISP, ROLES, DialectDescription, Fact, Frame
from dragoman.model.enums import RQ

LINK: Final = "rq.link"
LINK_NO: Final = 16


def source_request(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [
        ("ID", message_id),
        ("QUEUE", queue),
        ("PAYLOAD", description.body_frame(fact)[1]),
        *flags(fact),
        ("acts", "REQUEST"),
    ]


def consumer_request(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [
        ("QUEUEID", f"(the consumer's number of {queue})"),
        ("PAYLOAD", description.body_frame(fact)[1]),
        *flags(fact),
        ("ID", "(the consumer's own)"),
        ("acts", "REQUEST"),
    ]


def flags(fact: Fact) -> list[Frame]:
    return [] if "reply_wanted" in fact["flags"] else [("NOREPLY", "")]


DESCRIPTION: Final = DialectDescription(
    "rq",
    RQ,
    "dragoman.dialects.rq",
    listeners=[
        description.ListenerDescription(
            "rq", 15, 13700, "RQ nodes: sources and consumers alike, over RISP", ROLES, wire=RISP
        ),
        description.ListenerDescription(LINK, LINK_NO, 0, "our own connections to other controllers", wire=RISP),
    ],
    client_words=[
        (features.REPLY, "REPLY"),
        (features.REFUSAL, "UNDELIVERED"),
        (features.HANDOVER, "DELIVERED"),
        (features.RETRIES, "RETRIES"),
        (features.EXPIRY, "TIMEOUT, until DELIVERED"),
        (features.NO_REPLY, "NOREPLY"),
        (features.KEPT, "DELIVERED of a NOREPLY"),
        (features.PUBLISH, "BROADCAST to a queue"),
        (features.SUBSCRIBE, "CONSUME of the queue of exactly that name"),
        (features.QUEUES, "by name"),
    ],
    worker_words=[
        (features.REPLY, "REPLY"),
        (features.HANDOVER, "sent when the consumer sends DELIVERED"),
        (features.RETRIES, "UNDELIVERED, which gives the message back to other consumers, uses one up, too"),
    ],
    settings_about="RQ over RISP; defaults are the original's own where it has any.",
    shared=ROLES,
    stays=True,
    hello=b"\x05",  # PING
    client_frames=source_request,
    worker_frames=consumer_request,
    answer_word="REPLY",
)
