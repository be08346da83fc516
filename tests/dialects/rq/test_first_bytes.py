"""An rq port knows HTTP and TLS by their first bytes, and no RISP stream of rq's own commands is taken for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.rq.sessions import RqSession
from dragoman.errors import HttpNotSpoken, PeerError, TlsNotSpoken
from dragoman.wire.risp import commands
from tests.core.harness import InMemoryBroker
from tests.wire.test_first_bytes import HELLOS, REQUESTS

RECORDINGS = sorted((Path(__file__).parents[2] / "golden" / "rq").glob("*.jsonl"))
ACTING = [commands.CLEAR, commands.PING, commands.PONG, commands.NOP]

# Values that look like text are the ones that could be mistaken.
byte = st.one_of(st.sampled_from(list(b"AGPTabz /*")), st.integers(0, 255))
parameters = st.one_of(
    st.sampled_from([bytes([command]) for command in (commands.EXCLUSIVE, commands.NOREPLY, *ACTING)]),
    st.builds(lambda c, v: bytes([c, v]), st.sampled_from([commands.PRIORITY, commands.RETRIES]), byte),
    st.builds(
        lambda c, h, v: bytes([c, h, v]),
        st.sampled_from([commands.QUEUEID, commands.TIMEOUT, commands.MAX]),
        byte,
        byte,
    ),
    st.binary(max_size=40).map(lambda name: bytes([commands.QUEUE, len(name)]) + name),
    st.binary(min_size=4, max_size=4).map(lambda number: bytes([commands.ID]) + number),
)


def new_session() -> RqSession:
    session = InMemoryBroker().dialects.session("rq")
    assert isinstance(session, RqSession)
    session.start()
    return session


@given(st.lists(parameters, min_size=1, max_size=12).map(b"".join))
def test_no_stream_of_rqs_own_commands_is_taken_for_another_protocol(stream: bytes) -> None:
    for parts in ([stream], [stream[at : at + 1] for at in range(len(stream))]):
        session = new_session()
        for part in parts:
            session.receive(part)
        assert session.is_greeted or len(stream) < 40, "a text is held only until it is decided"


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_every_recorded_connection_of_the_original_is_understood_from_its_first_byte(recording: Path) -> None:
    first: dict[str, bytes] = {}
    for line in recording.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry.get("to") == "broker" and entry.get("bytes"):
            first.setdefault(entry["conn"], bytes.fromhex(entry["bytes"]))
    for data in first.values():
        session = new_session()
        session.receive(data[:1])
        assert session.is_greeted, data


@pytest.mark.parametrize(
    ("fault", "stream"), [(HttpNotSpoken, r) for r in REQUESTS] + [(TlsNotSpoken, h) for h in HELLOS]
)
def test_a_foreign_stream_is_refused_before_anything_behind_it_is_read(fault: type[PeerError], stream: bytes) -> None:
    with pytest.raises(fault):
        new_session().receive(stream)


@pytest.mark.parametrize("stream", REQUESTS)
def test_http_is_refused_byte_by_byte_too(stream: bytes) -> None:
    session = new_session()
    with pytest.raises(HttpNotSpoken):
        for at in range(len(stream)):
            session.receive(stream[at : at + 1])


def test_a_node_that_leaves_without_another_word_is_let_go() -> None:
    session = new_session()
    session.receive(bytes([commands.CLOSING]))
    assert session.is_finished
