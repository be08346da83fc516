"""Which features survive when a client of one dialect is served by a worker of another.

Each dialect declares once which features its clients and its workers can express, and how. Everything else is derived: a feature survives
a crossing when the client can express it and, where the worker takes part in it, the worker can, too. What the broker does by itself
(priorities, retries, timeouts) needs no support from the worker.

The reference page, the SDK's checks and the tests of every crossing read only these declarations.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.model.words import EBUS, EMQP, PINGPONG, RQ, SCALE0

DIALECTS: Final = [SCALE0, PINGPONG, EMQP, EBUS, RQ]

# Features of a crossing: the first four come from the worker, the others from the client.
REPLY: Final = 0
REFUSAL: Final = 1
REASON: Final = 2
HANDOVER: Final = 3
PRIORITY: Final = 4
RETRIES: Final = 5
TIMEOUT: Final = 6
EXPIRY: Final = 7
CANCEL: Final = 8
HEADERS: Final = 9
# Features between a client and the broker alone.
NO_REPLY: Final = 10
KEPT: Final = 11
DELAY: Final = 12
DEDUPE: Final = 13
STATE: Final = 14
SCHEDULE: Final = 15
PUBLISH: Final = 16
SUBSCRIBE: Final = 17
PREFIXES: Final = 18
QUEUES: Final = 19
ONCE: Final = 20
GUARANTEE: Final = 21
# From the client, too; added later.
TRACE: Final = 22

CROSSING: Final = [REPLY, REFUSAL, REASON, HANDOVER, PRIORITY, RETRIES, TIMEOUT, EXPIRY, CANCEL, HEADERS, TRACE]
BETWEEN: Final = [
    NO_REPLY,
    KEPT,
    DELAY,
    DEDUPE,
    STATE,
    SCHEDULE,
    PUBLISH,
    SUBSCRIBE,
    PREFIXES,
    QUEUES,
    ONCE,
    GUARANTEE,
]


@final
class Feature:
    """One feature. `is_joint`: client and worker must both support it; otherwise the broker provides it, whatever the worker's dialect."""

    def __init__(self, number: int, name: str, is_joint: bool, about: str, otherwise: str) -> None:
        self.number = number
        self.name = name
        self.is_joint = is_joint
        self.about = about
        self.otherwise = otherwise  # what happens with a worker whose dialect does not have it


FEATURES: Final = [
    Feature(REPLY, "reply", True, "the worker's answer comes back, byte for byte", ""),
    Feature(
        REFUSAL,
        "refusal",
        True,
        "a worker says that it does not do a message; its client is notified that there will be no answer",
        "a worker without such a word can only answer",
    ),
    Feature(
        REASON, "reject reason", True, "what the worker gave as its reason reaches the client", "no reason is sent"
    ),
    Feature(
        HANDOVER,
        "delivered notice",
        False,
        "the client is notified, once and before the answer, that a worker has the message",
        "sent by the broker when it gives the message to the worker",
    ),
    Feature(
        PRIORITY,
        "priority",
        False,
        "higher ones leave the queue first",
        "done by the broker; the worker is not notified",
    ),
    Feature(
        RETRIES,
        "retries",
        False,
        "how many more tries there are after a worker that died, timed out, failed or gave the message back",
        "counted by the broker: a lost worker and a timeout use one up",
    ),
    Feature(
        TIMEOUT,
        "timeout",
        False,
        "a hard bound on one attempt",
        "kept by the broker: the worker is not notified, and its late answer is dropped",
    ),
    Feature(
        EXPIRY,
        "expiry",
        False,
        "the instant after which the message is of no use; its client is notified that it passed",
        "kept by the broker: the worker is not notified, and its late answer is dropped",
    ),
    Feature(
        CANCEL,
        "cancel",
        False,
        "the client withdraws a message",
        "it ends in the broker; a worker that has it is not notified, and its answer is dropped",
    ),
    Feature(HEADERS, "headers", True, "further words of the client's own, carried to the worker", "dropped"),
    Feature(NO_REPLY, "no reply", False, "a message whose answer its client does not want", ""),
    Feature(KEPT, "kept notice", False, "the client is notified that the broker has the message safely", ""),
    Feature(DELAY, "delay", False, "not given to a worker before an instant", ""),
    Feature(DEDUPE, "dedupe", False, "of all messages with one key the first is taken", ""),
    Feature(STATE, "state", False, "the client asks where its message is", ""),
    Feature(SCHEDULE, "schedules", False, "later, and again", ""),
    Feature(PUBLISH, "publish", False, "news to whoever listens to a topic", ""),
    Feature(SUBSCRIBE, "subscribe", False, "hearing a topic's news", ""),
    Feature(PREFIXES, "prefixes", False, "hearing every topic that begins alike", ""),
    Feature(QUEUES, "queues", False, "more queues than one", ""),
    Feature(ONCE, "once", False, "sent again after a lost connection it still runs once", ""),
    Feature(GUARANTEE, "guarantee", False, "not settled before a success, however many tries that takes", ""),
    Feature(
        TRACE,
        "trace",
        True,
        "`traceparent`, the trace the client is in: `00-`, 32, 16 and 2 hex digits, as W3C Trace Context has it",
        "dropped",
    ),
]


@final
class Word:
    """How one dialect expresses one feature."""

    def __init__(self, dialect: int, feature: int, text: str) -> None:
        self.dialect = dialect
        self.feature = feature
        self.text = text


# What clients can send or receive.
CLIENT_WORDS: Final = [
    Word(SCALE0, REPLY, "TASKREPLY"),
    Word(SCALE0, REFUSAL, "ERROR 503 with the task's id"),
    Word(SCALE0, REASON, "`reason` of the ERROR"),
    Word(SCALE0, QUEUES, "services, by name"),
    Word(SCALE0, TRACE, "`traceparent` of the TASK"),
    Word(PINGPONG, REPLY, "the result (json: `msg`)"),
    Word(PINGPONG, REFUSAL, "ERROR"),
    Word(PINGPONG, REASON, "the frame behind ERROR (json: `reason`)"),
    Word(EMQP, REPLY, "REPLY with value and id"),
    Word(EMQP, REFUSAL, 'REPLY with the value `{"error":…}`'),
    Word(EMQP, REASON, "`message` of the error, or the worker's own error"),
    Word(EMQP, HANDOVER, "REPLY with the id alone"),
    Word(EMQP, PRIORITY, "`priority:0`–`9`"),
    Word(EMQP, RETRIES, "`retry-count:N`"),
    Word(EMQP, TIMEOUT, "`timeout:seconds`"),
    Word(EMQP, EXPIRY, "`expires:seconds`, until a worker has it"),
    Word(EMQP, CANCEL, "CANCEL with the id"),
    Word(EMQP, HEADERS, "any text in the header frame"),
    Word(EMQP, NO_REPLY, "no `reply-requested`"),
    Word(EMQP, KEPT, "`ack-requested`, answered ACK"),
    Word(EMQP, DELAY, "`delay:seconds`"),
    Word(EMQP, DEDUPE, "`dedupe:key`"),
    Word(EMQP, STATE, "STATE with the id"),
    Word(EMQP, SCHEDULE, "SCHEDULE, UNSCHEDULE"),
    Word(EMQP, PUBLISH, "PUBLISH to a topic"),
    Word(EMQP, SUBSCRIBE, "a SUB socket"),
    Word(EMQP, PREFIXES, "every subscription is one"),
    Word(EMQP, QUEUES, "by name"),
    Word(EMQP, ONCE, "STATE, then the same `dedupe` key"),
    Word(EMQP, GUARANTEE, "`guarantee`"),
    Word(EMQP, TRACE, "`traceparent:…`"),
    Word(EBUS, REPLY, "REPLY"),
    Word(EBUS, REFUSAL, "REJECT"),
    Word(EBUS, REASON, "data of the REJECT"),
    Word(EBUS, EXPIRY, "`stales ms`, also in a worker's hands"),
    Word(EBUS, CANCEL, "CANCEL, or REJECT"),
    Word(EBUS, PUBLISH, "a PUB socket, to a channel"),
    Word(EBUS, SUBSCRIBE, "a SUB socket"),
    Word(EBUS, PREFIXES, "every subscription is one"),
    Word(EBUS, QUEUES, "services, by name"),
    Word(EBUS, ONCE, "the same rid"),
    Word(RQ, REPLY, "REPLY"),
    Word(RQ, REFUSAL, "UNDELIVERED"),
    Word(RQ, HANDOVER, "DELIVERED"),
    Word(RQ, RETRIES, "RETRIES"),
    Word(RQ, EXPIRY, "TIMEOUT, until DELIVERED"),
    Word(RQ, NO_REPLY, "NOREPLY"),
    Word(RQ, KEPT, "DELIVERED of a NOREPLY"),
    Word(RQ, PUBLISH, "BROADCAST to a queue"),
    Word(RQ, SUBSCRIBE, "CONSUME of the queue of exactly that name"),
    Word(RQ, QUEUES, "by name"),
]

# What workers can receive or send.
WORKER_WORDS: Final = [
    Word(SCALE0, REPLY, "TASKREPLY"),
    Word(SCALE0, TRACE, "`traceparent` of its TASK"),
    Word(PINGPONG, REPLY, "the next frame that is no word of control (json: SUCCESS)"),
    Word(PINGPONG, REFUSAL, "json form only: ERROR, a failure, tried again while there are retries"),
    Word(PINGPONG, REASON, "json form only: `msg` of the ERROR"),
    Word(PINGPONG, RETRIES, "a failure reported in the json form uses one up, too, unless the client is an rq source"),
    Word(EMQP, REPLY, "REPLY"),
    Word(
        EMQP, REFUSAL, '`{"error":…}` or the original\'s `TimeoutError`: a failure, tried again while there are retries'
    ),
    Word(EMQP, REASON, "the whole error value"),
    Word(EMQP, RETRIES, "a failure uses one up, too, unless the client is an rq source"),
    Word(EMQP, TIMEOUT, "sent as `timeout:seconds`, if the client set it in eMQP"),
    Word(EMQP, HEADERS, "the header frame as it came"),
    Word(EMQP, TRACE, "`traceparent:…` in the header frame"),
    Word(EBUS, REPLY, "REPLY"),
    Word(EBUS, REFUSAL, "REJECT: final, never tried again"),
    Word(EBUS, REASON, "data of the REJECT"),
    Word(EBUS, TIMEOUT, "kept by the broker: the worker is sent CANCEL"),
    Word(EBUS, EXPIRY, "sent as `stales ms`; CANCEL when it passes"),
    Word(EBUS, CANCEL, "CANCEL"),
    Word(RQ, REPLY, "REPLY"),
    Word(RQ, HANDOVER, "sent when the consumer sends DELIVERED"),
    Word(RQ, RETRIES, "UNDELIVERED, which gives the message back to other consumers, uses one up, too"),
]


@final
class Words:
    """How the dialects express features in one role, by dialect and feature."""

    def __init__(self, words: list[Word]) -> None:
        self.texts: dict[int, str] = {}
        for word in words:
            self.texts[word.dialect << 8 | word.feature] = word.text

    def text(self, dialect: int, feature: int) -> str:
        """How a dialect expresses a feature; empty: it does not have it."""
        return self.texts.get(dialect << 8 | feature, "")


CLIENTS: Final = Words(CLIENT_WORDS)
WORKERS: Final = Words(WORKER_WORDS)


def client_has(dialect: int, feature: int) -> bool:
    """Whether a client of this dialect can send or receive it."""
    return CLIENTS.text(dialect, feature) != ""


def worker_has(dialect: int, feature: int) -> bool:
    """Whether this dialect's workers can express the feature."""
    return WORKERS.text(dialect, feature) != ""


def survives(client: int, worker: int, feature: int) -> bool:
    """Whether a feature works between a client of one dialect and a worker of another."""
    if not client_has(client, feature):
        return False
    return worker_has(worker, feature) or not FEATURES[feature].is_joint


def surviving(client: int, worker: int) -> list[int]:
    """The features that survive this crossing."""
    found: list[int] = []
    for feature in CROSSING:
        if survives(client, worker, feature):
            found.append(feature)
    return found


def dropped(client: int, worker: int) -> list[int]:
    """The features that one of the two can express and the other cannot receive."""
    found: list[int] = []
    for feature in CROSSING:
        is_used = worker_has(worker, feature) if feature <= HANDOVER else client_has(client, feature)
        if is_used and not survives(client, worker, feature):
            found.append(feature)
    return found


def wording(client: int, worker: int, feature: int) -> str:
    """How a surviving feature is expressed on its way; empty: it does not survive."""
    if not survives(client, worker, feature):
        return ""
    text = WORKERS.text(worker, feature) or FEATURES[feature].otherwise
    return CLIENTS.text(client, feature) + (" — " + text if text else "")


def having(feature: int) -> list[int]:
    """The dialects whose clients have the feature, the one most similar to the others first."""
    found: list[int] = []
    for dialect in [RQ, EBUS, SCALE0, PINGPONG, EMQP]:
        if client_has(dialect, feature):
            found.append(dialect)
    return found
