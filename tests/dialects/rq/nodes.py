"""Nodes at a broker without a process: what they say is spelt out, and so is what they hear."""

from __future__ import annotations

import re

from dragoman.dialects.rq.sessions import RqSession
from tests.core.harness import InMemoryBroker
from tests.dialects.rq.spelling import risp, spelt


class Node:
    """The far end of one rq connection."""

    def __init__(self, broker: InMemoryBroker) -> None:
        self.broker = broker
        session = broker.dialects.session("rq")
        assert isinstance(session, RqSession)
        self.session = session
        session.remote = "127.0.0.1:50000"
        session.start()
        self.unheard: list[str] = []

    def say(self, *texts: str) -> None:
        for text in texts:
            self.give(risp(text))

    def give(self, data: bytes) -> None:
        self.session.receive(data)
        self.broker.commit()

    def hears(self) -> list[str]:
        """What the broker said since the last look, as if every commit were instant."""
        self.broker.commit()
        heard = self.unheard + spelt(self.session.take_all())
        self.unheard = []
        return heard

    def hears_first(self) -> str:
        """The next operation; the ones behind it stay unheard."""
        heard = self.hears()
        assert heard, "nothing was said"
        self.unheard = heard[1:]
        return heard[0]

    def leave(self) -> None:
        """The connection ends without a word."""
        self.session.ended()
        self.broker.commit()

    def is_ended_by_us(self) -> bool:
        return self.session.is_finished


def consumer(broker: InMemoryBroker, queue: str = "q", options: str = "MAX=1", flags: str = "") -> Node:
    """A node that consumes a queue and was told so."""
    node = Node(broker)
    node.say(" ".join(word for word in ("CLEAR", flags, f"QUEUE={queue}", options, "CONSUME") if word))
    assert re.fullmatch(rf"QUEUEID=\d+ QUEUE={queue} CONSUMING", node.hears_first())
    return node


def request(number: int, queue: str = "q", body: str = "r", options: str = "") -> str:
    return " ".join(word for word in (f"CLEAR ID={number} QUEUE={queue} PAYLOAD={body}", options, "REQUEST") if word)


def job(number: int, body: str = "r", queue_id: int = 1, flag: str = "") -> str:
    """How a consumer hears a request."""
    return " ".join(word for word in (f"QUEUEID={queue_id} PAYLOAD={body}", flag, f"ID={number} REQUEST") if word)


def notes(broker: InMemoryBroker) -> dict[str, int]:
    """Oddities counted since the last look."""
    counted: dict[str, int] = dict(broker.core.notes)
    broker.core.notes.clear()
    return counted
