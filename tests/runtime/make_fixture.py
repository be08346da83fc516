"""Writes a small journal with messages of every kind, for the fixtures of the format's versions:

    PYTHONPATH=src python -m tests.runtime.make_fixture tests/runtime/fixture_v2

Run it once, with the first dragoman of a version, and keep what it made for ever (tests/runtime/test_fixture_messages.py).
"""

from __future__ import annotations

import sys

from dragoman.journal.disk import Disk
from dragoman.wire.zmtp.frames import encode_message
from tests.runtime.journaled_broker import JournaledBroker

SHARED_BLOCK = [b"of one block %d" % n for n in range(3)]
OWN_BLOCKS = [b"of its own block %d" % n for n in range(3)]
RETURNED, DELAYED, LATER = b"returned", b"delayed", b"after the first checkpoint"
LARGE = bytes(range(256)) * 40
DELAY_S = 3600


def write(directory: str) -> None:
    broker = JournaledBroker(Disk(), directory)
    client = broker.client()
    client.request(b"mail", RETURNED, b"guarantee", b"returned")
    client.request(b"mail", DELAYED, b"delay:%d" % DELAY_S, b"delayed")
    worker = broker.serve(slots=1)
    assert len(worker.jobs()) == 1
    client.give(
        b"".join(
            encode_message([b"", b"eMQP/1.0", b"REQUEST", b"shared-%d" % n, b"mail", b"", body])
            for n, body in enumerate(SHARED_BLOCK)
        )
    )
    for n, body in enumerate(OWN_BLOCKS):
        client.request(b"mail", body, b"", b"own-%d" % n)
    client.request(b"mail", LARGE, b"", b"large")
    broker.checkpoint()
    client.request(b"mail", LATER, b"", b"later")
    broker.checkpoint()
    broker.commit()
    broker.journal.close()


if __name__ == "__main__":
    write(sys.argv[1])
