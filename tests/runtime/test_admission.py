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


class Guest:
    """Stands for a connection."""

    def __init__(self, listener: str, host: str, opened_ns: int) -> None:
        self.listener, self.host, self.opened_ns = listener, host, opened_ns
        self.is_greeted = False


def admission(dropped: list[Guest], **limits: object) -> Admission:
    made = Admission(dropped.append)  # type: ignore[arg-type]
    made.apply(replace(Config(), limits=replace(LimitsConfig(), **limits)))  # type: ignore[arg-type]
    return made


def admit(made: Admission, guest: Guest) -> int:
    return made.admit(guest)  # type: ignore[arg-type]


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
    dropped: list[Guest] = []
    made = admission(dropped, connections_max=most, address_connections_max=20, exempt_addresses=())
    inside: list[Guest] = []
    for number, (move, listener, choice) in enumerate(moves):
        if move == "come":
            counts = Counter(guest.listener for guest in inside)
            hosts = Counter(guest.host for guest in inside)
            guest = Guest(listener, f"10.0.0.{choice % 3}", number)
            code = admit(made, guest)
            for gone in dropped:
                assert not gone.is_greeted
                assert counts[gone.listener] > made.share
                inside.remove(gone)
            if code == ADMITTED:
                inside.append(guest)
            elif code == ADDRESS_FULL:
                assert hosts[guest.host] == 20
            else:
                assert code == FULL
                assert counts[listener] >= made.share
                assert all(g.is_greeted for g in inside if counts[g.listener] > made.share)
            dropped.clear()
        elif inside:
            guest = inside[choice % len(inside)]
            if move == "greet":
                guest.is_greeted = True
            else:
                inside.remove(guest)
                made.leave(guest)  # type: ignore[arg-type]
                made.leave(guest)  # type: ignore[arg-type]
        assert len(inside) <= most


def test_a_network_of_ipv6_counts_as_one_address_and_a_mapped_address_as_its_own() -> None:
    made = admission([], address_connections_max=1)
    assert admit(made, Guest("rq", "2001:db8::1", 0)) == ADMITTED
    assert admit(made, Guest("rq", "2001:db8::ffff:1", 0)) == ADDRESS_FULL
    assert admit(made, Guest("rq", "2001:db8:0:1::1", 0)) == ADMITTED
    assert admit(made, Guest("rq", "10.0.0.1", 0)) == ADMITTED
    assert admit(made, Guest("rq", "::ffff:10.0.0.1", 0)) == ADDRESS_FULL
    assert admit(made, Guest("rq", "fe80::1%eth0", 0)) == ADMITTED
    for host in ("::ffff:127.0.0.1", "::1", "127.0.0.9", ""):
        assert [admit(made, Guest("rq", host, 0)) for _ in range(3)] == [ADMITTED] * 3


@pytest.mark.parametrize(("most", "share"), [(1, 0), (29, 0), (30, 1), (60, 2), (200, 4), (10_000, 66)])
def test_the_share_of_a_listener(most: int, share: int) -> None:
    assert admission([], connections_max=most).share == share


def test_those_that_came_too_long_ago_without_a_handshake_are_late() -> None:
    made = admission([])
    guests = [Guest("rq", "", at_ns) for at_ns in range(4)]
    for guest in guests:
        admit(made, guest)
    guests[0].is_greeted = True
    assert made.late(2) == [guests[1]]
    assert made.late(4) == guests[1:]
