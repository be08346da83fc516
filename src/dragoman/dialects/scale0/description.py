"""Scale0 as the rest of the program knows it."""

from __future__ import annotations

from typing import Final

from dragoman.dialects import description, features
from dragoman.dialects.description import BROADCASTS, CLIENT, UNKNOWN_ID, WORKER, DialectDescription, Fact, Frame
from dragoman.model.enums import SCALE0


def task(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [
        ("command", "TASK"),
        ("header", f'{{"id": "{message_id}", "service": "{queue}"}}'),
        description.body_frame(fact),
    ]


def worker_id(fact: Fact, digits: str) -> str:
    return f"{digits}.….{fact['client_id']}" if digits else UNKNOWN_ID


DESCRIPTION: Final = DialectDescription(
    "scale0",
    SCALE0,
    "dragoman.dialects.scale0",
    listeners=[
        description.ListenerDescription("scale0.client", 6, 8080, "Scale0 clients", (CLIENT,)),
        description.ListenerDescription("scale0.worker", 7, 8081, "Scale0 workers", (WORKER,)),
        description.ListenerDescription(
            "scale0.publish",
            8,
            8082,
            "broadcasts of Scale0's newest broker to all its workers, which subscribe with SUB sockets",
            output=BROADCASTS,
        ),
    ],
    client_words=[
        (features.REPLY, "TASKREPLY"),
        (features.REFUSAL, "ERROR 503 with the task's id"),
        (features.REASON, "`reason` of the ERROR"),
        (features.QUEUES, "services, by name"),
        (features.TRACE, "`traceparent` of the TASK"),
    ],
    worker_words=[
        (features.REPLY, "TASKREPLY"),
        (features.TRACE, "`traceparent` of its TASK"),
    ],
    settings_about="Scale0: configuration is negotiated, one PING buys one task.",
    takes_zmtp1=True,
    stays=True,
    client_frames=task,
    worker_frames=task,
    worker_id=worker_id,
    answer_word="TASKREPLY",
)
