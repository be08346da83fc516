"""Admission by itself: against a plain count of everything, whatever comes and goes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.runtime.admission import ADDRESS_FULL, ADMITTED, FULL, Admission
from dragoman.runtime.config import Config
from dragoman.runtime.config.listeners import LISTENERS
from dragoman.runtime.config.sections import LimitsConfig


class FakeConnection:
    """Stands for a connection."""

    def __init__(self, listener: str, host: str, opened_ns: int) -> None:
        self.listener, self.host, self.opened_ns = listener, host, opened_ns
        self.is_greeted = False


def admission(dropped: list[FakeConnection], **limits: object) -> Admission:
    made = Admission(dropped.append)  # type: ignore[arg-type]
    made.apply(replace(Config(), limits=replace(LimitsConfig(), **limits)))  # type: ignore[arg-type]
    return made


def admit(made: Admission, connection: FakeConnection) -> int:
    return made.admit(connection)  # type: ignore[arg-type]


events = st.lists(
    st.tuples(
        st.sampled_from(["come", "come", "greet", "go"]), st.sampled_from(sorted(LISTENERS)[:4]), st.integers(0, 50)
    ),
    max_size=150,
)


@given(events, st.sampled_from([1, 7, 40, 100]))
def test_the_limits_hold_and_a_listener_under_its_share_is_never_refused(
    moves: list[tuple[str, str, int]], most: int
) -> None:
    dropped: list[FakeConnection] = []
    made = admission(dropped, connections_max=most, address_connections_max=20, exempt_addresses=())
    inside: list[FakeConnection] = []
    for number, (move, listener, choice) in enumerate(moves):
        if move == "come":
            counts = Counter(connection.listener for connection in inside)
            hosts = Counter(connection.host for connection in inside)
            connection = FakeConnection(listener, f"10.0.0.{choice % 3}", number)
            code = admit(made, connection)
            for gone in dropped:
                assert not gone.is_greeted
                assert counts[gone.listener] > made.share
                inside.remove(gone)
            if code == ADMITTED:
                inside.append(connection)
            elif code == ADDRESS_FULL:
                assert hosts[connection.host] == 20
            else:
                assert code == FULL
                assert counts[listener] >= made.share
                assert all(g.is_greeted for g in inside if counts[g.listener] > made.share)
            dropped.clear()
        elif inside:
            connection = inside[choice % len(inside)]
            if move == "greet":
                connection.is_greeted = True
            else:
                inside.remove(connection)
                made.leave(connection)  # type: ignore[arg-type]
                made.leave(connection)  # type: ignore[arg-type]
        assert len(inside) <= most


def test_a_network_of_ipv6_counts_as_one_address_and_a_mapped_address_as_its_own() -> None:
    made = admission([], address_connections_max=1)
    assert admit(made, FakeConnection("rq", "2001:db8::1", 0)) == ADMITTED
    assert admit(made, FakeConnection("rq", "2001:db8::ffff:1", 0)) == ADDRESS_FULL
    assert admit(made, FakeConnection("rq", "2001:db8:0:1::1", 0)) == ADMITTED
    assert admit(made, FakeConnection("rq", "10.0.0.1", 0)) == ADMITTED
    assert admit(made, FakeConnection("rq", "::ffff:10.0.0.1", 0)) == ADDRESS_FULL
    assert admit(made, FakeConnection("rq", "fe80::1%eth0", 0)) == ADMITTED
    for host in ("::ffff:127.0.0.1", "::1", "127.0.0.9", ""):
        assert [admit(made, FakeConnection("rq", host, 0)) for _ in range(3)] == [ADMITTED] * 3


@pytest.mark.parametrize(("most", "share"), [(1, 0), (29, 0), (30, 1), (60, 2), (200, 4), (10_000, 66)])
def test_the_share_of_a_listener(most: int, share: int) -> None:
    assert admission([], connections_max=most).share == share


def test_those_that_came_too_long_ago_without_a_handshake_are_late() -> None:
    made = admission([])
    connections = [FakeConnection("rq", "", at_ns) for at_ns in range(4)]
    for connection in connections:
        admit(made, connection)
    connections[0].is_greeted = True
    assert made.late(2) == [connections[1]]
    assert made.late(4) == connections[1:]
