"""`dragoman bench`: a short load of round trips in any dialect, client and worker in this one process.

It measures a broker and its disk here and now. Client and worker are plain Python and share a core: the comparison with other brokers,
with faster clients and workers, is `make bench` in the repository.
"""

from __future__ import annotations

import asyncio
import functools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
import uvloop
from click import FloatRange, IntRange, option

from dragoman.cli.admin_client import Progress, is_running
from dragoman.cli.broker_process import BrokerProcess
from dragoman.cli.options import address_of, common_options, url_option
from dragoman.cli.show import print_json, print_pairs, progress_bar
from dragoman.client.address import Address
from dragoman.client.connection import new_identity, new_message_ids
from dragoman.client.link import E, Link
from dragoman.dialects.description import CLIENT, WORKER
from dragoman.dialects.endpoint import ANSWERED, CallOptions, ClientEndpoint, EndpointSetup, WorkerEndpoint
from dragoman.errors import BrokerUnreachable, NoAnswer

PATIENCE_S: Final = 10.0
CONNECT_S: Final = 5.0
PROGRESS_S: Final = 0.1


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
    with (
        found_broker(url, data, durability) as (address, what),
        progress_bar(f"loading {what}", as_json) as progress,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        result = runner.run(Load(address, in_flight, bytes(size)).run(seconds, progress))
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
    """The broker of --url, the one that runs in --data, or a temporary one for this measurement."""
    if url is not None or is_running(data):
        address = address_of(url, data)
        yield address, address.text
        return
    with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as directory:
        broker = BrokerProcess(Path(directory) / "data", durability, "lake.mode=off")
        try:
            try:
                broker.start()
            except BrokerUnreachable:
                log = broker.log.read_text(errors="replace")
                raise click.ClickException(f"the temporary broker did not start:\n{log}") from None
            yield address_of(None, broker.data), f"a temporary one, durability {durability}"
        finally:
            broker.end()


class Load:
    """One client and one worker, each with a connection."""

    def __init__(self, address: Address, in_flight: int, body: bytes) -> None:
        self._address = address
        self._in_flight = in_flight
        self._body = body
        self._ids = new_message_ids()
        self._queue = (address.queue or f"dragoman-bench-{os.urandom(4).hex()}").encode()
        self._options = CallOptions(self._queue)
        self._sent_s: dict[bytes, float] = {}
        self._latencies_s: list[float] = []
        self._end_s = 0.0  # by `time.perf_counter`
        self._links: list[Link[Any]] = []

    async def run(self, seconds: float, progress: Progress) -> dict[str, float]:
        profile = self._address.profile
        self._answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # all requests are
        worker_endpoint: WorkerEndpoint = profile.endpoints().worker(new_setup())
        worker_endpoint.serve([(10, self._queue)], 1 if profile.one_job else self._in_flight)
        worker = await self._connect(worker_endpoint, WORKER, self._work)
        client = await self._connect(profile.endpoints().client(new_setup()), CLIENT, self._receive_answers)
        begun_s = time.perf_counter()
        self._end_s = begun_s + seconds
        for _ in range(self._in_flight):
            self._request(client.endpoint)
        client.push()
        count, counted_s = 0, begun_s
        while not self._answered.done():
            await asyncio.wait([self._answered], timeout=PROGRESS_S)
            now_s = time.perf_counter()
            progress(min(int((now_s - begun_s) * 10), int(seconds * 10)), int(seconds * 10))
            if len(self._latencies_s) > count:
                count, counted_s = len(self._latencies_s), now_s
            elif now_s - counted_s > PATIENCE_S:
                raise NoAnswer(f"{len(self._sent_s)} requests", PATIENCE_S)
        self._answered.result()
        spent_s = time.perf_counter() - begun_s
        worker.endpoint.goodbye()
        for link in self._links:
            link.close()
            await link.lost.wait()
        latencies = sorted(self._latencies_s)
        count = len(latencies)
        return {
            "round_trips": count,
            "seconds": spent_s,
            "per_second": count / spent_s,
            "p50_ms": latencies[count // 2] * 1e3,
            "p99_ms": latencies[min(count * 99 // 100, count - 1)] * 1e3,
        }

    async def _connect(self, endpoint: E, role: str, receive: Callable[[Link[E], bytes], None]) -> Link[E]:
        make = functools.partial(Link, endpoint, receive, gone=self._lost, hello=self._address.profile.hello)
        reason = "no address"
        try:
            async with asyncio.timeout(CONNECT_S):
                for host, port in self._address.host_ports(role):
                    try:
                        _, link = await asyncio.get_running_loop().create_connection(make, host, port)
                    except OSError as error:
                        reason = error.strerror or str(error)
                        continue
                    await link.opened
                    self._links.append(link)
                    return link
        except OSError as error:  # no broker file, no handshake, or a timeout
            reason = str(error) or "no answer"
        raise BrokerUnreachable(self._address.text, CONNECT_S, reason)

    def _lost(self, link: Link[E]) -> None:
        if link in self._links and not self._answered.done():
            self._answered.set_exception(BrokerUnreachable(self._address.text, CONNECT_S, link.reason))

    def _work(self, link: Link[WorkerEndpoint], data: bytes) -> None:
        worker = link.endpoint
        for request_id, _, _ in worker.receive(data):
            worker.reply(request_id, b'{"value":1}')
            worker.ready(1)

    def _receive_answers(self, link: Link[ClientEndpoint], data: bytes) -> None:
        now_s = time.perf_counter()
        for kind, message_id, value in link.endpoint.receive(data):
            if message_id not in self._sent_s:
                continue
            if kind != ANSWERED and not self._answered.done():
                refusal = f"the broker refused the load: {value.decode('utf-8', 'replace')}"
                self._answered.set_exception(click.ClickException(refusal))
            self._latencies_s.append(now_s - self._sent_s.pop(message_id))
            if now_s < self._end_s:
                self._request(link.endpoint)
            elif not self._sent_s and not self._answered.done():
                self._answered.set_result(None)

    def _request(self, client: ClientEndpoint) -> None:
        message_id = self._ids.take()
        self._sent_s[message_id] = time.perf_counter()
        client.request(message_id, self._options, self._body)


def new_setup() -> EndpointSetup:
    setup = EndpointSetup(new_identity(), new_message_ids())
    setup.wall_s = time.time() - asyncio.get_running_loop().time()
    return setup
