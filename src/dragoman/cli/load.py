"""`dragoman bench`: a short load of round trips, client and worker in this one process.

It tells how a broker and its disk do here and now. The ends are plain Python and share a core: the comparison with other brokers,
with faster ends, is `make bench` in the repository.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from dragoman.cli.admin_client import Progress
from dragoman.cli.options import data_option, json_option, url_option
from dragoman.cli.show import print_json, print_pairs, progress_bar
from dragoman.cli.talk import Talk, address_of
from dragoman.client.address import Address
from dragoman.errors import BrokerUnreachable, NoAnswer
from dragoman.wire.zmtp.frames import encode_message

START_S: Final = 20.0
PATIENCE_S: Final = 10.0


@click.command()
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=3.0, show_default=True, help="How long.")
@click.option("--in-flight", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Requests under way.")
@click.option("--size", type=click.IntRange(0, 1 << 20), default=100, show_default=True, help="Bytes of a body.")
@click.option("--durability", default="disk", show_default=True, help="Of the temporary broker.")
@url_option
@data_option
@json_option
def bench(
    seconds: float, in_flight: int, size: int, durability: str, url: str | None, data: Path, as_json: bool
) -> None:
    """Put a short load on a broker and measure it: request, worker, reply.

    Uses the broker of --data or --url when one runs, on a queue of its own; else a temporary one, in a temporary directory.
    """
    with found_broker(url, data, durability) as (address, what):
        load = Load(address, in_flight, bytes(size))
        with progress_bar(f"loading {what}", as_json) as progress:
            result = load.run(seconds, progress)
    if as_json:
        print_json({"broker": what, "in_flight": in_flight, "body_size": size, **result})
        return
    print_pairs(
        [
            ("broker", what),
            ("round trips", f"{result['round_trips']} in {result['seconds']:.2f} s, {in_flight} under way"),
            ("per second", f"{result['per_second']:.0f}"),
            ("latency", f"p50 {result['p50_ms']:.2f} ms, p99 {result['p99_ms']:.2f} ms"),
        ]
    )


@contextmanager
def found_broker(url: str | None, data: Path, durability: str) -> Iterator[tuple[Address, str]]:
    """The broker that runs, or one for just this."""
    address = address_of(url, data)
    try:
        Talk(address, "client").close()
    except BrokerUnreachable:
        if url is not None:
            raise
        with temporary_broker(durability) as home:
            yield address_of(None, home), f"a temporary one, durability {durability}"
        return
    yield address, address.text


@contextmanager
def temporary_broker(durability: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as home:
        data = Path(home) / "data"
        flags = [f"--listen={name}=tcp://127.0.0.1:0" for name in ("emqp.client", "emqp.worker")]
        flags += [f"--listen={name}=off" for name in ("emqp.admin", "emqp.publish", "emqp.subscribe")]
        command = [sys.executable, "-m", "dragoman", "up", "--data", str(data), "--durability", durability, *flags]
        command += ["--set", "lake.mode=off"]
        with (Path(home) / "log").open("wb") as log:
            broker = subprocess.Popen(command, stderr=log, stdout=log)
        try:
            await_start(broker, data, Path(home) / "log")
            yield data
        finally:
            broker.terminate()
            broker.wait(PATIENCE_S)


def await_start(broker: subprocess.Popen[bytes], data: Path, log: Path) -> None:
    end_s = time.monotonic() + START_S
    while not (data / "broker.json").exists():
        if broker.poll() is not None or time.monotonic() > end_s:
            raise click.ClickException("the temporary broker did not start:\n" + log.read_text())
        time.sleep(0.02)


class Load:
    """One client and one worker, each with its connection."""

    def __init__(self, address: Address, in_flight: int, body: bytes) -> None:
        self._in_flight = in_flight
        self._body = body
        self._queue = b"dragoman-bench-" + os.urandom(4).hex().encode()
        self._client = Talk(address, "client")
        self._worker = Talk(address, "worker")
        self._sent_s: dict[bytes, float] = {}
        self._latencies_s: list[float] = []
        self._is_ending = False

    def run(self, seconds: float, progress: Progress) -> dict[str, float]:
        inform = [
            b"",
            b"eMQP/1.0",
            b"INFORM",
            self._worker.ids.take(),
            b'[[10,"%s"]]' % self._queue,
            b"worker",
            b"bytes",
        ]
        self._worker.send(encode_message(inform))
        self._worker.send(self._ready(self._in_flight))
        begun_s = time.perf_counter()
        self._client.send(b"".join(self._request() for _ in range(self._in_flight)))
        try:
            self._exchange(begun_s, seconds, progress)
        finally:
            self._worker.send(encode_message([b"", b"eMQP/1.0", b"KBYE", self._worker.ids.take()]))
            self._client.close()
            self._worker.close()
        spent_s = time.perf_counter() - begun_s
        latencies = sorted(self._latencies_s)
        count = len(latencies)
        return {
            "round_trips": count,
            "seconds": spent_s,
            "per_second": count / spent_s,
            "p50_ms": latencies[count // 2] * 1e3,
            "p99_ms": latencies[min(count * 99 // 100, count - 1)] * 1e3,
        }

    def _exchange(self, begun_s: float, seconds: float, progress: Progress) -> None:
        while self._sent_s:
            readable, _, _ = select.select([self._client, self._worker], [], [], PATIENCE_S)
            if not readable:
                raise NoAnswer(f"{len(self._sent_s)} requests", PATIENCE_S)
            spent_s = time.perf_counter() - begun_s
            self._is_ending = spent_s >= seconds
            progress(min(int(spent_s * 10), int(seconds * 10)), int(seconds * 10))
            for end in readable:
                out = self._work(end) if end is self._worker else self._ask(end)
                if out:
                    end.send(out)

    def _work(self, worker: Talk) -> bytes:
        out = []
        for frames in worker.hear():
            if frames[2] == b"REQUEST":
                out.append(encode_message([b"", b"eMQP/1.0", b"REPLY", worker.ids.take(), b'{"value":1}', frames[3]]))
        return b"".join(out) + self._ready(len(out))

    def _ask(self, client: Talk) -> bytes:
        out = []
        now_s = time.perf_counter()
        for frames in client.hear():
            if len(frames) == 6 and frames[2] == b"REPLY":
                self._latencies_s.append(now_s - self._sent_s.pop(frames[5]))
                if not self._is_ending:
                    out.append(self._request())
        return b"".join(out)

    def _request(self) -> bytes:
        message_id = self._client.ids.take()
        self._sent_s[message_id] = time.perf_counter()
        return encode_message([b"", b"eMQP/1.0", b"REQUEST", message_id, self._queue, b"reply-requested", self._body])

    def _ready(self, count: int) -> bytes:
        return b"".join(encode_message([b"", b"eMQP/1.0", b"READY", self._worker.ids.take()]) for _ in range(count))
