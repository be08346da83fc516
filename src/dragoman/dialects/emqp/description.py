"""eMQP as the rest of the program knows it."""

from __future__ import annotations

from typing import Final

from dragoman.dialects import description, features
from dragoman.dialects.description import CLIENT, NEWS, PUBLISH, SUBSCRIBE, WORKER, DialectDescription, Fact, Frame
from dragoman.model.enums import EMQP
from dragoman.model.message import in_own_shape


def request(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return [
        ("", ""),
        ("version", "eMQP/1.0"),
        ("command", "REQUEST"),
        ("message id", message_id),
        ("queue", queue),
        ("headers", fact.get("headers", "(the lake keeps none)")),
        description.body_frame(fact),
    ]


def worker_id(fact: Fact, digits: str) -> str:
    """The client's own where that is safe, else the broker's."""
    if fact["dialect"] == "emqp" and fact["client_id"]:
        return str(fact["client_id"])
    return in_own_shape(digits.encode()).decode() if digits else description.UNKNOWN_ID


DESCRIPTION: Final = DialectDescription(
    "emqp",
    EMQP,
    "dragoman.dialects.emqp",
    listeners=[
        description.ListenerDescription(
            "emqp.client",
            1,
            47291,
            "clients (EventMQ programs and the SDK send requests and schedules here) and EventMQ's scheduler",
            (CLIENT,),
        ),
        description.ListenerDescription("emqp.worker", 2, 47290, "workers (EventMQ's job managers)", (WORKER,)),
        description.ListenerDescription("emqp.admin", 3, 47293, "EventMQ's administration commands"),
        description.ListenerDescription("emqp.publish", 4, 47298, "publishers, who send PUBLISH", (PUBLISH,)),
        description.ListenerDescription(
            "emqp.subscribe", 5, 47299, "subscribers, who listen with SUB sockets", (SUBSCRIBE,), output=NEWS
        ),
    ],
    client_words=[
        (features.REPLY, "REPLY with value and id"),
        (features.REFUSAL, 'REPLY with the value `{"error":…}`'),
        (features.REASON, "`message` of the error, or the worker's own error"),
        (features.HANDOVER, "REPLY with the id alone"),
        (features.PRIORITY, "`priority:0`–`9`"),
        (features.RETRIES, "`retry-count:N`"),
        (features.TIMEOUT, "`timeout:seconds`"),
        (features.EXPIRY, "`expires:seconds`, until a worker has it"),
        (features.CANCEL, "CANCEL with the id"),
        (features.HEADERS, "any text in the header frame"),
        (features.NO_REPLY, "no `reply-requested`"),
        (features.KEPT, "`ack-requested`, answered ACK"),
        (features.DELAY, "`delay:seconds`"),
        (features.DEDUPE, "`dedupe:key`"),
        (features.STATE, "STATE with the id"),
        (features.SCHEDULE, "SCHEDULE, UNSCHEDULE"),
        (features.PUBLISH, "PUBLISH to a topic"),
        (features.SUBSCRIBE, "a SUB socket"),
        (features.PREFIXES, "every subscription is one"),
        (features.QUEUES, "by name"),
        (features.ONCE, "STATE, then the same `dedupe` key"),
        (features.GUARANTEE, "`guarantee`"),
        (features.TRACE, "`traceparent:…`"),
    ],
    worker_words=[
        (features.REPLY, "REPLY"),
        (
            features.REFUSAL,
            '`{"error":…}` or the original\'s `TimeoutError`: a failure, tried again while there are retries',
        ),
        (features.REASON, "the whole error value"),
        (features.RETRIES, "a failure uses one up, too, unless the client is an rq source"),
        (features.TIMEOUT, "sent as `timeout:seconds`, if the client set it in eMQP"),
        (features.HEADERS, "the header frame as it came"),
        (features.TRACE, "`traceparent:…` in the header frame"),
    ],
    settings_about="The eMQP dialect (EventMQ's protocol); defaults are EventMQ's own.",
    shared=(CLIENT, WORKER, PUBLISH),
    calls_survive=True,
    answers_survive=True,
    envelope_size=256,
    client_frames=request,
    worker_frames=request,
    worker_id=worker_id,
    answer_word="REPLY",
)
