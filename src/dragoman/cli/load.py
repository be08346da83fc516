"""`dragoman bench`: a short load of round trips in any dialect, client and worker in this one process.

It measures a broker and its disk here and now. Client and worker are plain Python and share a core: the comparison with other brokers,
with faster clients and workers, is `make bench` in the repository.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from click import FloatRange, IntRange, option

from dragoman.cli.admin_client import Progress
from dragoman.cli.options import address_of, common_options, url_option
from dragoman.cli.show import print_json, print_pairs, progress_bar
from dragoman.client.address import CLIENT, WORKER, Address
from dragoman.client.connection import new_identity, new_message_ids
from dragoman.dialects.endpoint import (
    ANSWERED,
    BEAT_S,
    CallOptions,
    ClientEndpoint,
    Endpoint,
    EndpointSetup,
    WorkerEndpoint,
)
from dragoman.errors import BrokerUnreachable, NoAnswer

START_S: Final = 20.0
PATIENCE_S: Final = 10.0
CONNECT_S: Final = 5.0
READ_SIZE: Final = 1 << 18


@click.command()
@option("--seconds", type=FloatRange(0.1, 3600), default=3.0, show_default=True, help="How long.")
@option("--in-flight", type=IntRange(1, 10_000), default=100, show_default=True, help="Requests under way.")
@option("--size", type=IntRange(0, 1 << 20), default=100, show_default=True, help="Bytes of a body.")
@option("--durability", default="disk", show_default=True, help="Of the temporary broker.")
@url_option
@common_options
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
    """The running broker, or a temporary one for this measurement."""
    address = address_of(url, data)
    try:
        SocketUnder(client_endpoint(address), address, CLIENT).close()
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


def new_setup() -> EndpointSetup:
    setup = EndpointSetup(new_identity(), new_message_ids())
    setup.wall_s = time.time() - time.monotonic()
    return setup


def client_endpoint(address: Address) -> ClientEndpoint:
    return address.profile.endpoints().client(new_setup())


class SocketUnder:
    """A blocking socket that drives an endpoint until it is ready; then its owner receives."""

    def __init__(self, endpoint: Endpoint, address: Address, role: str) -> None:
        self._endpoint = endpoint
        self._address = address
        self._socket = self._connect(role)
        self._socket.sendall(endpoint.opening() + address.profile.hello)
        self._next_beat_s = 0.0

    def _connect(self, role: str) -> socket.socket:
        reason = "no address"
        try:
            for place in self._address.host_ports(role):
                try:
                    return socket.create_connection(place, CONNECT_S)
                except OSError as error:
                    reason = error.strerror or str(error)
        except ConnectionError as error:
            reason = str(error)
        raise BrokerUnreachable(self._address.text, CONNECT_S, reason)

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> bytes:
        try:
            data = self._socket.recv(READ_SIZE)
        except OSError as error:
            raise BrokerUnreachable(self._address.text, CONNECT_S, error.strerror or str(error)) from error
        if not data:
            raise BrokerUnreachable(self._address.text, CONNECT_S, "the broker closed the connection")
        return data

    def flush(self) -> None:
        """Send the endpoint's pending output, and its heartbeats when they are due."""
        now_s = time.monotonic()
        if self._endpoint.beat_s and now_s >= self._next_beat_s:
            self._next_beat_s = now_s + self._endpoint.beat_s
            self._endpoint.beat(now_s)
        data = self._endpoint.data_to_send()
        if data:
            self._socket.sendall(data)

    def close(self) -> None:
        """Close after delivery: shutting down our side first lets the broker read everything sent."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the broker closed first
        self._socket.close()


class Load:
    """One client and one worker, each with a connection."""

    def __init__(self, address: Address, in_flight: int, body: bytes) -> None:
        profile = address.profile
        self._in_flight = in_flight
        self._body = body
        self._ids = new_message_ids()
        queue = address.queue or f"dragoman-bench-{os.urandom(4).hex()}"
        self._options = CallOptions(queue.encode())
        self._client = client_endpoint(address)
        self._worker: WorkerEndpoint = profile.endpoints().worker(new_setup())
        self._worker.serve([(10, queue.encode())], 1 if profile.one_job else in_flight)
        self._client_socket = SocketUnder(self._client, address, CLIENT)
        self._worker_socket = SocketUnder(self._worker, address, WORKER)
        self._sent_s: dict[bytes, float] = {}
        self._latencies_s: list[float] = []
        self._is_ending = False

    def run(self, seconds: float, progress: Progress) -> dict[str, float]:
        while not (self._client.is_ready and self._worker.is_ready):
            self._turn()
        begun_s = time.perf_counter()
        for _ in range(self._in_flight):
            self._request()
        try:
            while self._sent_s:
                spent_s = time.perf_counter() - begun_s
                self._is_ending = spent_s >= seconds
                progress(min(int(spent_s * 10), int(seconds * 10)), int(seconds * 10))
                self._turn()
        finally:
            self._worker.goodbye()
            self._worker_socket.flush()
            self._client_socket.close()
            self._worker_socket.close()
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

    def _turn(self) -> None:
        """Send all pending output, then read once from each readable connection."""
        readable: list[SocketUnder] = []
        until_s = time.monotonic() + PATIENCE_S
        while not readable:
            self._client_socket.flush()
            self._worker_socket.flush()
            readable, _, _ = select.select([self._client_socket, self._worker_socket], [], [], BEAT_S)
            if not readable and time.monotonic() > until_s:
                raise NoAnswer(f"{len(self._sent_s)} requests", PATIENCE_S)
        if self._worker_socket in readable:
            for request_id, _, _ in self._worker.receive(self._worker_socket.read()):
                self._worker.reply(request_id, b'{"value":1}')
                self._worker.ready(1)
        if self._client_socket in readable:
            self._take_answers(self._client_socket.read())

    def _take_answers(self, data: bytes) -> None:
        now_s = time.perf_counter()
        for kind, message_id, value in self._client.receive(data):
            if message_id not in self._sent_s:
                continue
            if kind != ANSWERED:
                raise click.ClickException(f"the broker refused the load: {value.decode('utf-8', 'replace')}")
            self._latencies_s.append(now_s - self._sent_s.pop(message_id))
            if not self._is_ending:
                self._request()

    def _request(self) -> None:
        message_id = self._ids.take()
        self._sent_s[message_id] = time.perf_counter()
        self._client.request(message_id, self._options, self._body)
