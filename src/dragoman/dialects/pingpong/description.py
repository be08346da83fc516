"""The ping-pong dialogue as the rest of the program knows it."""

from __future__ import annotations

from typing import Final

from dragoman.dialects import description, features
from dragoman.dialects.description import CLIENT, WORKER, DialectDescription, Fact, Frame, ListenerDescription
from dragoman.model.enums import PINGPONG


def job(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [("", ""), description.body_frame(fact)]


DESCRIPTION: Final = DialectDescription(
    "pingpong",
    PINGPONG,
    "dragoman.dialects.pingpong",
    listeners=[
        ListenerDescription("pingpong.client", 9, 6001, "clients of the ping-pong dialogue", (CLIENT,)),
        ListenerDescription("pingpong.worker", 10, 6002, "workers of the ping-pong dialogue", (WORKER,)),
    ],
    client_words=[
        (features.REPLY, "the result (json: `msg`)"),
        (features.REFUSAL, "ERROR"),
        (features.REASON, "the frame behind ERROR (json: `reason`)"),
    ],
    worker_words=[
        (features.REPLY, "the next frame that is no word of control (json: SUCCESS)"),
        (features.REFUSAL, "json form only: ERROR, a failure, tried again while there are retries"),
        (features.REASON, "json form only: `msg` of the ERROR"),
        (features.RETRIES, "a failure reported in the json form uses one up, too, unless the client is an rq source"),
    ],
    settings_about="The ping-pong dialogue; defaults are the original's. All its workers serve one queue.",
    one_job=True,
    queue="pingpong",
    client_frames=job,
    worker_frames=job,
    answer_word="result",
)
