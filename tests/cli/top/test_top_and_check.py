"""`dragoman top` and `dragoman check` against a real broker: one frame, many frames, a broker that goes and comes back."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.inspect.check import OK, WARNING, Bounds, Verdict
from dragoman.cli.options import address_of
from dragoman.cli.top.command import Look, Window, lately, quantiles_ns, rate
from dragoman.model.buckets import bucket_of
from tests.cli.broker import BrokerProcess, Commands, wait_for
from tests.cli.raw_emqp import RawEmqp

MS_NS = 1_000_000


def send(dragoman: Commands, queue: str, count: int = 1) -> None:
    for _ in range(count):
        assert dragoman("send", queue, "{}").code == 0


def echo(body: bytes) -> bytes:
    return b'{"value":%s}' % body


# -- what is counted ----------------------------------------------------------------------------------------------------


def test_quantiles_are_those_of_what_happened_between_two_looks() -> None:
    before = [[bucket_of(900_000 * MS_NS), 1000]]
    now = [[bucket_of(1 * MS_NS), 90], [bucket_of(50 * MS_NS), 9], [bucket_of(2000 * MS_NS), 1], *before]
    found = [value / MS_NS for value in quantiles_ns(lately(now, before)).values()]
    assert found == pytest.approx([1, 50, 50], rel=1 / 8)
    assert quantiles_ns(lately(before, before)) == {}


def test_a_rate_over_no_time_is_no_rate() -> None:
    assert (rate(5, 3, 0.0), rate(5, 3, 0.5), rate(3, 5, 1.0)) == (0.0, 4.0, 0.0)


def test_a_broker_that_started_again_is_not_compared_with_the_one_before() -> None:
    window = Window()
    for started_ns, now_ns in ((1, 10), (1, 20), (2, 30)):
        window.add(look(started_ns, now_ns))
    assert window.span_s == 0
    assert window.oldest is window.newest


def test_a_window_forgets_what_is_older_than_ten_seconds_but_keeps_two_looks() -> None:
    window = Window()
    for second in range(100):
        window.add(look(1, second * 1000 * MS_NS))
    assert window.span_s == 10
    window.add(look(1, 200_000 * MS_NS))
    assert window.span_s == 101


def look(started_ns: int, now_ns: int) -> Look:
    return Look({"started_ns": started_ns, "now_ns": now_ns}, {}, [], [], 0, 0)


# -- top ----------------------------------------------------------------------------------------------------------------


def test_one_frame_tells_totals_queues_workers_and_what_is_stuck(dragoman: Commands, broker: BrokerProcess) -> None:
    send(dragoman, "mail", 3)
    send(dragoman, "other", 1)
    fake_worker = broker.serve(b"other", None)
    wait_for("the other's lease", lambda: fake_worker.held)
    text = dragoman("top", "--once", "--interval-s", "0.1").out
    assert "waiting 3" in text
    assert "! queue `mail` has 3 waiting and no worker" in text
    assert text.index("mail ") < text.index("other ")
    assert "worker (1)" in text
    frame = dragoman("top", "--once", "--json", "--interval-s", "0.1").json
    assert [queue["queue"] for queue in frame["queues"]] == ["mail", "other"]
    assert frame["queues"][0]["oldest_s"] > 0
    assert frame["totals"]["waiting"] == 3
    assert [worker["leased"] for worker in frame["workers"]] == [1]
    assert frame["span_s"] > 0


def test_rates_and_times_are_those_of_the_interval(dragoman: Commands, broker: BrokerProcess) -> None:
    broker.serve(b"mail", echo, 100)
    is_over = threading.Event()

    def talk_on() -> None:
        with RawEmqp(address_of(None, broker.data), "client") as talk:
            while not is_over.is_set():
                talk.answer(talk.request("mail", "reply-requested", b"1"), 15)

    talker = threading.Thread(target=talk_on)
    talker.start()
    try:
        frame: Any = wait_for(
            "traffic",
            lambda: next(
                (
                    f
                    for f in [dragoman("top", "--once", "--json", "--interval-s", "0.3").json]
                    if f["totals"]["wait_ns"]
                ),
                None,
            ),
        )
    finally:
        is_over.set()
        talker.join(15)
    totals = frame["totals"]
    assert totals["accepted_per_s"] > 0
    assert totals["settled_per_s"] > 0
    assert 0 < totals["total_ns"]["p50"] <= totals["total_ns"]["p99"]
    assert frame["queues"][0]["in_per_s"] > 0


def test_without_a_broker_one_frame_fails_with_the_usual_code(alone: Commands) -> None:
    found = alone("top", "--once")
    assert found.code == 3
    assert "BROKER_NOT_REACHABLE" in found.err


def test_top_waits_for_a_broker_that_goes_and_ends_cleanly_when_interrupted(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    frames, words = tmp_path / "frames", tmp_path / "words"
    command = [sys.executable, "-m", "dragoman", "top", "--json", "--interval-s", "0.1", "--data", str(broker.data)]
    with frames.open("wb") as out, words.open("wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
    try:
        wait_for("the first frame", lambda: b"\n" in frames.read_bytes())
        broker.end()
        wait_for("a word about it", lambda: "waiting for the broker" in words.read_text())
        broker.start()
        wait_for("the next boot", lambda: any(boot(line) == 2 for line in frames.read_text().splitlines()[:-1]))
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
    finally:
        process.kill()
        process.wait(15)
    assert "Traceback" not in words.read_text()


def boot(line: str) -> int:
    return int(json.loads(line)["boot_no"])


def test_on_a_terminal_top_draws_one_screen_and_leaves_it_as_it_was(broker: BrokerProcess) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "dragoman", "top", "--interval-s", "0.1", "--data", str(broker.data)]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"})
    os.close(slave)
    seen = bytearray()
    reader = threading.Thread(target=read_on, args=(master, seen))
    reader.start()
    try:
        wait_for("a frame", lambda: b"queue (0)" in seen)
        broker.end()
        wait_for("a word about it", lambda: b"waiting for the broker" in seen)
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
        reader.join(15)
    finally:
        process.kill()
        process.wait(15)
        os.close(master)
    assert seen.rindex(b"\x1b[?1049l") > seen.rindex(b"\x1b[?1049h")


def read_on(master: int, seen: bytearray) -> None:
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:  # the other end is closed
            return
        if not data:
            return
        seen += data


# -- check --------------------------------------------------------------------------------------------------------------


def test_all_is_well_is_one_line_with_numbers_behind_it(dragoman: Commands) -> None:
    found = dragoman("check")
    assert found.code == 0
    assert (
        found.out
        == "DRAGOMAN OK: 0 waiting in 0 queues, 0 workers, oldest 0.0 ms | waiting=0;;;0 oldest=0s;;;0 stuck=0;;;0\n"
    )


@pytest.mark.parametrize(
    ("options", "code", "beginning"),
    [
        (["--depth-warn", "4"], 0, "DRAGOMAN OK: 3 waiting"),
        (["--depth-warn", "3"], 1, "DRAGOMAN WARNING: 3 waiting (from 3 on) | waiting=3;3;;0 "),
        (["--depth-warn", "1", "--depth-crit", "3"], 2, "DRAGOMAN CRITICAL: 3 waiting (from 3 on) | waiting=3;1;3;0 "),
        (["--age-crit", "0.0001"], 2, "DRAGOMAN CRITICAL: oldest "),
        (["--age-warn", "0.0001", "--depth-crit", "1"], 2, "DRAGOMAN CRITICAL: 3 waiting (from 1 on); oldest "),
        (["--lag-warn", "1"], 3, "DRAGOMAN UNKNOWN: there is no lag to judge: this broker writes no lake"),
        (
            ["--lag-crit", "1", "--depth-crit", "1"],
            2,
            "DRAGOMAN CRITICAL: 3 waiting (from 1 on); there is no lag to judge",
        ),
        (["--lag-crit", "1", "--depth-warn", "1"], 3, "DRAGOMAN UNKNOWN: there is no lag to judge"),
        (["--depth-warn", "10000000"], 0, "DRAGOMAN OK: 3 waiting in 2 queues"),
        (["--stuck"], 1, "DRAGOMAN WARNING: queue `mail` has 3 waiting and no worker"),
        (["--queue", "mai"], 3, "DRAGOMAN UNKNOWN: there is no queue 'mai'"),
        (["--queue", "other", "--depth-warn", "1", "--stuck"], 0, "DRAGOMAN OK: 0 waiting in other"),
    ],
)
def test_thresholds_decide_the_code_and_the_reason_comes_first(
    waiting: Commands, options: list[str], code: int, beginning: str
) -> None:
    found = waiting("check", *options)
    assert (found.code, found.out[: len(beginning)]) == (code, beginning)
    assert found.out.count("\n") == 1


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Three messages that nobody takes, and a queue in which nothing waits."""
    process = BrokerProcess(tmp_path_factory.mktemp("crowd") / "data")
    process.serve(b"other", None, 0)
    yield process
    process.end()


@pytest.fixture
def waiting(crowd: BrokerProcess, capfd: pytest.CaptureFixture[str]) -> Commands:
    dragoman = Commands(crowd.data, capfd)
    rows = {row["queue"]: row["waiting"] for row in dragoman("queues", "--json").json["queues"]}
    send(dragoman, "mail", 3 - rows.get("mail", 0))
    wait_for("the other queue", lambda: len(dragoman("queues", "--json").json["queues"]) == 2)
    wait_for("an age, which is judged in tenths of a second", lambda: "oldest=0s" not in dragoman("check").out)
    return dragoman


def test_the_worst_reason_comes_first(waiting: Commands) -> None:
    found = waiting("check", "--stuck", "--depth-warn", "1", "--age-crit", "0.0001")
    assert re.match(
        r"DRAGOMAN CRITICAL: oldest .*; 3 waiting \(from 1 on\); queue `mail` has 3 waiting and no worker \|", found.out
    )


def test_no_broker_is_critical_and_misuse_is_unknown(alone: Commands) -> None:
    found = alone("check")
    assert found.code == 2
    assert found.out.startswith("DRAGOMAN CRITICAL: no broker answers at ")
    assert alone("check", "--depth-warn", "many").code == 3
    assert alone("check", "--nonsense").code == 3


def test_numbers_have_all_their_digits_and_no_exponent() -> None:
    verdict = Verdict()
    verdict.measure("waiting", 1_234_567, "", Bounds(1_000_000.0, 20_000_000.5), "1234567 waiting")
    verdict.measure("oldest", 86_400_000.1, "s", Bounds(None, None), "")
    verdict.measure("lag", 0, "", Bounds(0.00001, None), "")
    assert verdict.numbers == [
        "waiting=1234567;1000000;20000000.5;0",
        "oldest=86400000.1s;;;0",
        "lag=0;0.00001;;0",
    ]
    assert verdict.reasons == ["1234567 waiting (from 1000000 on)"]
    assert verdict.level == WARNING


def test_the_lag_of_a_lake_that_is_written_is_judged(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    process = BrokerProcess(tmp_path / "data", "--set=lake.mode=on")
    try:
        found = Commands(process.data, capfd)("check", "--lag-warn", "1000000")
        assert found.code == OK, found.out
        assert re.search(r" lag=\d+;1000000;;0 ", found.out)
    finally:
        process.end(signal.SIGTERM)
