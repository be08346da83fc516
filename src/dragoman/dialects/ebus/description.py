"""EBUS as the rest of the program knows it."""

from __future__ import annotations

from typing import Final

from dragoman.dialects import description, features
from dragoman.dialects.description import CLIENT, NEWS, PUBLISH, SUBSCRIBE, WORKER, DialectDescription, Fact, Frame
from dragoman.model.enums import EBUS


def client_request(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [
        ("", ""),
        ("version", "EBC01"),
        ("command", "REQ"),
        ("service", queue),
        ("rid", message_id),
        description.body_frame(fact),
    ]


def worker_request(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [("version", "EBC01"), ("command", "REQ"), ("rid", message_id), description.body_frame(fact)]


DESCRIPTION: Final = DialectDescription(
    "ebus",
    EBUS,
    "dragoman.dialects.ebus",
    listeners=[
        description.ListenerDescription("ebus.client", 11, 5000, "EBUS clients", (CLIENT,)),
        description.ListenerDescription("ebus.worker", 12, 5001, "EBUS workers", (WORKER,)),
        description.ListenerDescription(
            "ebus.publish", 13, 5002, "EBUS publishers, who send with PUB sockets", (PUBLISH,)
        ),
        description.ListenerDescription(
            "ebus.subscribe", 14, 5003, "EBUS subscribers, who listen with SUB sockets", (SUBSCRIBE,), output=NEWS
        ),
    ],
    client_words=[
        (features.REPLY, "REPLY"),
        (features.REFUSAL, "REJECT"),
        (features.REASON, "data of the REJECT"),
        (features.EXPIRY, "`stales ms`, also while leased"),
        (features.CANCEL, "CANCEL, or REJECT"),
        (features.PUBLISH, "a PUB socket, to a channel"),
        (features.SUBSCRIBE, "a SUB socket"),
        (features.PREFIXES, "every subscription is one"),
        (features.QUEUES, "services, by name"),
        (features.ONCE, "the same rid"),
    ],
    worker_words=[
        (features.REPLY, "REPLY"),
        (features.REFUSAL, "REJECT: final, never tried again"),
        (features.REASON, "data of the REJECT"),
        (features.TIMEOUT, "kept by the broker: the worker is sent CANCEL"),
        (features.EXPIRY, "sent as `stales ms`; CANCEL when it passes"),
        (features.CANCEL, "CANCEL"),
    ],
    settings_about="EBUS: services and channels; defaults are the original's own.",
    shared=(CLIENT, WORKER),
    resends=True,
    expiry_s_max=86_400.0,  # the broker's default is 3 s; a caller waits longer than that, but not for ever
    client_frames=client_request,
    worker_frames=worker_request,
    answer_word="REPLY",
)
