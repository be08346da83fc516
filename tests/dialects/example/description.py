"""lines as the rest of the program knows it."""

from dragoman.dialects import features
from dragoman.dialects.description import CLIENT, TEXT, WORKER, DialectDescription, ListenerDescription, body_frame
from tests.dialects.example import LINES

DESCRIPTION = DialectDescription(
    "lines",
    LINES,
    "tests.dialects.example",
    listeners=[ListenerDescription("lines", 100, 7070, "clients and workers that send lines", (CLIENT, WORKER), TEXT)],
    client_words=[
        (features.REPLY, "OK"),
        (features.REFUSAL, "NO"),
        (features.REASON, "text of the NO"),
        (features.KEPT, "ID"),
        (features.QUEUES, "by name"),
    ],
    worker_words=[(features.REPLY, "OK")],
    settings_about="An example of a dialect.",
    shared=(CLIENT, WORKER),
    answers_survive=True,
    client_frames=lambda fact, queue, message_id: [("command", "PUT"), ("queue", queue), body_frame(fact)],
    worker_frames=lambda fact, queue, message_id: [("command", "JOB"), ("id", message_id), body_frame(fact)],
    answer_word="OK",
)
