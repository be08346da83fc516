"""A broker that was away finds its ports free."""

from __future__ import annotations

import socket
import subprocess
import sys

from dragoman.cli.ports import HOST, _system_range_begins, lasting_addresses, lasting_port


def test_the_system_gives_such_a_port_to_nobody() -> None:
    assert lasting_port() < _system_range_begins()


def test_one_that_somebody_listens_at_is_passed_over() -> None:
    first = lasting_port()
    with socket.create_server((HOST, first + 1)):
        assert lasting_port() > first + 1


def test_two_processes_share_no_block() -> None:
    mine = {int(address.rpartition(":")[2]) for address in lasting_addresses(map(str, range(40))).values()}
    assert len(mine) == 40
    asked = "from dragoman.cli.ports import lasting_port; print(*(lasting_port() for _ in range(600)))"
    answer = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    assert mine.isdisjoint(map(int, answer.split()))
