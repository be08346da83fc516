"""The broker's process and composition root: locks the data directory, recovers, listens, and shuts down cleanly."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import structlog
import uvloop

from dragoman.core.settings import CoreSettings
from dragoman.errors import ListenerTaken, NoListener
from dragoman.runtime.admin.socket import AdminServer
from dragoman.runtime.admin.tap import Taps
from dragoman.runtime.admission import room_for_connections
from dragoman.runtime.broker import Broker
from dragoman.runtime.children.followers import Indexing, JournalFollower, Sealing, is_lake_wanted
from dragoman.runtime.children.webpage import Webpage, bind_patiently
from dragoman.runtime.clock import Clock
from dragoman.runtime.config import Config, reloadable_changes
from dragoman.runtime.config.listeners import HTTP
from dragoman.runtime.links import keep_rq_link, watch_scale0_brokers, watch_scale0_file
from dragoman.runtime.process import logs
from dragoman.runtime.process.home import Home
from dragoman.runtime.process.machine import bind, map_large_blocks
from dragoman.runtime.recovery import begin_boot, open_journal, recover
from dragoman.runtime.settings import apply_settings, journal_settings
from dragoman.runtime.upkeep import Upkeep
from dragoman.version import VERSION, build_flavour

if TYPE_CHECKING:
    from dragoman.core.core import Core
    from dragoman.journal.journal import Journal

log = structlog.get_logger("dragoman")

DRAIN_STEP_S = 0.05
BACKLOG = 1024


def run(config: Config, reload: Callable[[], Config] | None = None) -> int:
    """Run a broker until it is asked to stop. Return the process's exit code."""
    logs.configure(config)
    home = Home(config.data)
    home.enter()
    map_large_blocks()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            server = Server(config, home, reload)
            runner.run(server.run())
    finally:
        home.leave()
    return 1 if server.has_failed else 0


class Server:
    """One run of a broker process."""

    def __init__(self, config: Config, home: Home, reload: Callable[[], Config] | None) -> None:
        self.config = config
        self.home = home
        self.version = VERSION
        self.listeners: dict[str, str] = {}
        self.taps = Taps()
        self.followers: dict[str, JournalFollower] = {}  # by their keys in `dragoman status`
        self.webpage: Webpage | None = None
        self.has_failed = False
        self._load_config = reload
        self._servers: list[asyncio.Server] = []
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self) -> None:
        began_s = time.monotonic()
        journal = open_journal(journal_settings(self.config, str(self.home.journal)))
        settings = CoreSettings()
        apply_settings(self.config, settings)
        core, checkpoint_segments = recover(journal, settings)
        clock = Clock(core.now_ns)
        self._prepare_tracing(journal, core)
        begin_boot(core, journal, clock.now_ns())
        self.journal, self.core = journal, core
        self.broker = Broker(self.config, journal, core, clock, Upkeep(core, journal, checkpoint_segments))
        self.broker.admission.connections_max = room_for_connections(self.config.limits.connections_max)
        self.broker.on_stop = self.request_stop
        admin = AdminServer(self)
        if is_lake_wanted(self.config):
            self.followers["lake"] = Sealing(self.config, self.home, journal, self.broker.upkeep)
        if self.config.journal.index == "auto" and self.config.journal.durability != "memory":
            self.followers["index"] = Indexing(self.home, journal)
        tasks: list[asyncio.Future[None]] = []
        try:
            await self._listen()
            await admin.start(self.home.admin_socket)
            self._handle_signals()
            tame_garbage_collector()
            self.broker.start()
            upstreams = self.config.dialects["rq"].upstreams
            tasks += [asyncio.ensure_future(keep_rq_link(self.broker, address)) for address in upstreams]
            tasks.append(asyncio.ensure_future(watch_scale0_brokers(self.broker)))
            tasks.append(asyncio.ensure_future(watch_scale0_file(lambda: self.config, self._on_hangup)))
            for follower in self.followers.values():
                follower.start()
            if self.webpage is not None:
                self.webpage.start()
            self.home.announce(self.listeners)
            self._greet(time.monotonic() - began_s)
            notify("READY=1")
            await self._stopping.wait()
            for task in tasks:
                task.cancel()
            notify("STOPPING=1")
            if not self.has_failed:
                await self._drain()
        finally:
            if self.webpage is not None:
                await self.webpage.stop()
            await admin.stop()
            for server in self._servers:
                server.close()
            self.broker.stop()
            journal.close()
            for follower in reversed(self.followers.values()):
                await follower.stop()
        log.info("stopped")

    def _prepare_tracing(self, journal: Journal, core: Core) -> None:
        if not self.config.otel.endpoint:
            return
        if self.config.journal.durability == "memory":
            log.warning("no traces are exported: with durability memory there are no facts to read them from")
            return
        from dragoman.runtime.children.tracing import Tracing  # most brokers do not need it

        self.followers["otel"] = Tracing(self.config, self.home, journal, core)

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for listener in self.config.listen.values():
            if listener.is_off:
                continue
            try:
                sock = await bind_patiently(listener, self.home) if listener.name == HTTP else bind(listener, BACKLOG)
            except OSError as error:
                if listener.is_explicit:
                    raise ListenerTaken(listener.name, listener.address, error) from error
                log.error(
                    f"LISTENER OFF: {listener.name} cannot bind {listener.address} ({error.strerror}); "
                    f"choose another address with --listen {listener.name}=tcp://127.0.0.1:PORT, "
                    f"or leave it out with --listen {listener.name}=off",
                    code="LISTENER_TAKEN",
                )
                continue
            if listener.name == HTTP:
                self.webpage = Webpage(self.config, self.home, sock)
                self.listeners[HTTP] = self.webpage.address
                continue
            new_connection = cast(type[asyncio.Protocol], partial(self.taps.connection, self.broker, listener.name))
            server = await loop.create_server(new_connection, sock=sock, backlog=BACKLOG)
            self._servers.append(server)
            host, port = sock.getsockname()[:2]
            self.listeners[listener.name] = f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"
        if not self._servers:
            raise NoListener

    def _greet(self, seconds: float) -> None:
        waiting = sum(queue.waiting + queue.delayed for queue in self.core.state.queues.values())
        log.info(
            "ready",
            version=VERSION,
            build=build_flavour(),
            data=str(self.home.path),
            durability=self.config.journal.durability,
            waiting=waiting,
            started_in_s=round(seconds, 3),
        )
        for name, address in self.listeners.items():
            log.info("listening", listener=name, address=address)

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self.on_loop_fault)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.request_stop)
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup)

    def request_stop(self) -> None:
        """First call: drain and stop. Second call: stop without waiting."""
        (self._hurry if self._stopping.is_set() else self._stopping).set()

    def on_loop_fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an internal error. If it happened while serving one peer, only that connection is lost (the event loop has closed it). In the tick
        or the sweep it would leave a broker that looks alive and does nothing, so the process exits and its supervisor starts another."""
        log.error("internal fault", code="INTERNAL", context=context.get("message"), exc_info=context.get("exception"))
        if context.get("exception") is not None and not {"transport", "protocol", "task", "future"} & context.keys():
            self.has_failed = True
            self.broker.halt()
            self._stopping.set()

    def _on_hangup(self) -> None:
        with suppress(Exception):  # `reload` has logged it; a signal has no caller to report to
            self.reload()

    def reload(self) -> dict[str, list[str]]:
        """Read the settings again and apply them; return which ones were applied and which ones need a restart."""
        if self._load_config is None:
            return {"applied": [], "needs_restart": []}
        notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            changes = reloadable_changes(self.config, self._load_config())
        except Exception as error:  # an invalid file must not stop a running broker
            log.error("reload failed, settings unchanged", error=str(error))
            notify("READY=1")
            raise
        self.config = changes.effective
        self.broker.apply(changes.effective)
        self.broker.admission.connections_max = room_for_connections(changes.effective.limits.connections_max)
        self.journal.settings = journal_settings(changes.effective, str(self.home.journal))
        logs.configure(changes.effective)
        result = {"applied": list(changes.applied), "needs_restart": list(changes.needs_restart)}
        log.info("reloaded", **result)
        notify("READY=1")
        return result

    async def _drain(self) -> None:
        broker = self.broker
        broker.drain()
        limit_s = self.config.drain.limit_s
        log.info("draining", leases=broker.leases, limit_s=limit_s)
        end_s = time.monotonic() + limit_s
        while broker.leases and time.monotonic() < end_s and not self._hurry.is_set():
            try:
                await asyncio.wait_for(self._hurry.wait(), DRAIN_STEP_S)
            except TimeoutError:
                continue
        broker.say_goodbye()
        await broker.wait_durable()
        await broker.flush(self._hurry)
        if broker.leases:
            log.warning("stopped before all work was answered; it will be given out again", leases=broker.leases)


def tame_garbage_collector() -> None:
    """Run the garbage collector rarely. Messages are freed by reference count; looking for cycles among a million waiting ones costs 12 % of the hot
    path and finds nothing. Scanning ten thousand new objects takes about 4 ms; a hundred thousand would block the event loop."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 1000, 1000)


def notify(state: str) -> None:
    """Send a state to systemd (Type=notify) if NOTIFY_SOCKET is set."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        try:
            sock.sendto(state.encode(), "\0" + address[1:] if address[0] == "@" else address)
        except OSError as error:
            log.warning("cannot notify systemd", error=str(error))
