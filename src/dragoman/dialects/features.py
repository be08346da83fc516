"""The features that a dialect may have. Each dialect declares in its description which of them its clients and its workers can express."""

from __future__ import annotations

from typing import Final, final

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

CROSSING: Final = [*range(REPLY, NO_REPLY), TRACE]
BETWEEN: Final = list(range(NO_REPLY, TRACE))


@final
class Feature:
    """One feature. `is_joint`: client and worker must both support it; otherwise the broker provides it, whatever the worker's dialect."""

    def __init__(self, name: str, about: str, otherwise: str = "", is_joint: bool = False) -> None:
        self.name = name
        self.about = about
        self.otherwise = otherwise  # what happens with a worker whose dialect does not have it
        self.is_joint = is_joint


# By number.
FEATURES: Final = [
    Feature("reply", "the worker's answer comes back, byte for byte", is_joint=True),
    Feature(
        "refusal",
        "a worker refuses a message; its client is notified that there will be no answer",
        "a worker whose dialect has no refusal can only answer",
        is_joint=True,
    ),
    Feature(
        "reject reason", "what the worker gave as its reason reaches the client", "no reason is sent", is_joint=True
    ),
    Feature(
        "delivered notice",
        "the client is notified, once and before the answer, that a worker has the message",
        "sent by the broker when it gives the message to the worker",
    ),
    Feature("priority", "higher ones leave the queue first", "done by the broker; the worker is not notified"),
    Feature(
        "retries",
        "how many more tries there are after a worker that died, timed out, failed or gave the message back",
        "counted by the broker: a lost worker and a timeout use one up",
    ),
    Feature(
        "timeout",
        "a hard bound on one attempt",
        "kept by the broker: the worker is not notified, and its late answer is dropped",
    ),
    Feature(
        "expiry",
        "the instant after which the message is of no use; its client is notified that it passed",
        "kept by the broker: the worker is not notified, and its late answer is dropped",
    ),
    Feature(
        "cancel",
        "the client withdraws a message",
        "it ends in the broker; a worker that has it is not notified, and its answer is dropped",
    ),
    Feature("headers", "further headers of the client's own, carried to the worker", "dropped", is_joint=True),
    Feature("no reply", "a message whose answer its client does not want"),
    Feature("kept notice", "the client is notified that the broker has the message safely"),
    Feature("delay", "not given to a worker before an instant"),
    Feature("dedupe", "of all messages with one key the first is taken"),
    Feature("state", "the client asks where its message is"),
    Feature("schedules", "later, and again"),
    Feature("publish", "a message to all subscribers of a topic"),
    Feature("subscribe", "receiving what is published on a topic"),
    Feature("prefixes", "receiving every topic that begins alike"),
    Feature("queues", "more queues than one"),
    Feature("once", "sent again after a lost connection it still runs once"),
    Feature("guarantee", "a failure or a timeout does not settle it: it is tried again, then quarantined"),
    Feature(
        "trace",
        "`traceparent`, the trace the client is in: `00-`, 32, 16 and 2 hex digits, as W3C Trace Context has it",
        "dropped",
        is_joint=True,
    ),
]
