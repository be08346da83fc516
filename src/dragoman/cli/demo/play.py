"""`dragoman demo` and its steps: start, cross, kill, restart, cross again, count, and show the data pipeline's report."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import click
from click import FloatRange, option
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dragoman.cli.admin_client import ask
from dragoman.cli.broker_process import BrokerProcess
from dragoman.cli.demo.cast import LATER, LONG, NAMES, Clients, Tally, Workers
from dragoman.cli.show import console
from dragoman.dialects import crossing, features
from dragoman.errors import AdminUnreachable, BrokerUnreachable
from dragoman.model.enums import DIALECT_NAMES

STORED_COUNT: Final = 50  # messages stored just before the kill, in each dialect that confirms it
FINISH_S: Final = 60.0
LOOK_S: Final = 0.05
REFRESHES_A_SECOND: Final = 8
DEAD_S: Final = 1.0  # how long the broker stays dead, so that all peers notice


@click.command()
@option("--seconds", default=40.0, show_default=True, type=FloatRange(2, 3600), help="How long it crosses.")
@option("--report/--no-report", default=True, help="End with the data pipeline's report, if PySpark is installed.")
def demo(seconds: float, report: bool) -> int:
    """Show all five dialects at work.

    Starts a broker with a journal of its own, a worker and a client of each dialect, and lets every client ask every worker. In the
    middle the broker is killed with -9 and started again. At the end it counts: nothing that was accepted may be lost. Everything it
    made is removed, but for the report: the data pipeline turns the facts of it all into tables and one page to look at. The exit code is
    1 if anything was lost.
    """
    try:
        return asyncio.run(play(seconds, report))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def play(seconds: float, with_report: bool) -> int:
    """Run the demo; return 0 if nothing was lost."""
    logging.getLogger("dragoman").setLevel(logging.CRITICAL)  # every peer would log the broker's death
    # SIGHUP and SIGTERM end the demo as Ctrl-C does: the broker stopped and the files removed.
    itself = asyncio.current_task()
    assert itself is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, itself.cancel)
    with tempfile.TemporaryDirectory(prefix="dragoman-demo-") as folder:
        tally = Tally()
        broker = BrokerProcess(Path(folder) / "data", "os")
        with Screen(tally) as screen:
            try:
                traced = await perform(seconds, broker, tally, screen)
                result = await conclude(broker, tally, screen, traced)
            finally:
                await asyncio.to_thread(broker.end)
            if with_report and not result:
                result = await make_report(broker.data, screen)
            return result


async def perform(seconds: float, broker: BrokerProcess, tally: Tally, screen: Screen) -> str:
    """Run both halves and the kill between them; return the id of a message that was leased across the kill."""
    workers, clients = Workers(broker.data, tally), Clients(broker.data, tally)
    try:
        await asyncio.to_thread(broker.start)
        screen.print(
            f"A broker (process {broker.pid}) listens on {len(broker.listen)} ports, its journal in {broker.data}."
        )
        await workers.start_all()
        await workers.start("ebus", LONG)
        screen.print(f"A worker and a client of each dialect are at it: {', '.join(NAMES)}.")
        clients.start()
        await watch(seconds / 2, tally, screen, "crossing")
        await clients.leave(STORED_COUNT)
        traced = await clients.begin_long()
        open_calls = tally.calls.total() - tally.answered.total()
        broker.kill()
        stored = sum(map(len, tally.stored.values()))
        text = f"kill -9 {broker.pid}: it is gone, with {open_calls} calls under way and {stored} messages kept."
        screen.print(text, "bold red")
        await watch(DEAD_S, tally, screen, "dead")
        began = time.monotonic()
        await asyncio.to_thread(broker.start)
        took_s = time.monotonic() - began
        screen.print(f"Started again (process {broker.pid}) after {took_s:.1f} s; nobody else was.", "bold green")
        await workers.start("ebus", LATER)
        await watch(seconds / 2, tally, screen, "crossing again")
        await complete(tally, screen)
        screen.state.plain = "waiting for the last answers"
        try:
            async with asyncio.timeout(FINISH_S):
                await clients.finish()
                await settle(broker)
        except TimeoutError:
            tally.troubles.append(f"not everything was settled {FINISH_S:g} s after the last question")
        return traced
    finally:
        await clients.stop()
        await workers.stop()


async def watch(seconds: float, tally: Tally, screen: Screen, what: str) -> None:
    """Wait while clients and workers run."""
    ends = time.monotonic() + seconds
    while (now := time.monotonic()) < ends:
        screen.state.plain = f"{what}: {tally.answered.total()} answered, {ends - now:.0f} s to go"
        await asyncio.sleep(LOOK_S)


async def complete(tally: Tally, screen: Screen) -> None:
    """Wait until every crossing has been seen: any worker may take a message of a shared queue."""
    ends = time.monotonic() + FINISH_S
    while tally.missing_cells and time.monotonic() < ends:
        screen.state.plain = f"{len(tally.missing_cells)} crossings still to be seen"
        await asyncio.sleep(LOOK_S)


async def counters_of(broker: BrokerProcess) -> dict[str, Any]:
    """The broker's counters; empty while it does not respond."""
    try:
        counters: dict[str, Any] = await asyncio.to_thread(ask, broker.data, "counters")
    except AdminUnreachable:
        return {}
    return counters


async def settle(broker: BrokerProcess) -> None:
    """Wait until the broker has no open messages."""
    while True:
        counters = await counters_of(broker)
        if counters and not counters["waiting"] + counters["delayed"] + counters["leased"]:
            return
        await asyncio.sleep(LOOK_S)


async def conclude(broker: BrokerProcess, tally: Tally, screen: Screen, traced: str) -> int:
    """Print the totals, one message's history and the result."""
    counters = await counters_of(broker)
    if not counters:
        raise BrokerUnreachable(str(broker.data), 0, "it does not answer any more")
    screen.end_live()
    screen.console.print(screen.crossings(), "", screen.accounts(), "", sep="\n")
    screen.print(screen.broker_line(counters))
    losses = tally.losses()
    if counters["accepted"] != counters["settled"] or counters["quarantined"]:
        losses.append(f"the broker accepted {counters['accepted']} messages and settled {counters['settled']}")
    screen.print(f"\nThe life of one that a worker had leased at that moment (dragoman trace {traced}):")
    if await run_command("trace", traced, "--data", str(broker.data)):
        losses.append(f"message {traced} has left no trace")
    for loss in losses[:20]:
        screen.print(loss, "red")
    if losses:
        screen.print(f"{len(losses)} things went wrong.", "bold red")
        return 1
    screen.print(
        f"Nothing was lost: {tally.answered.total()} calls answered over {len(NAMES) ** 2} crossings, broker killed once.",
        "bold green",
    )
    return 0


async def run_command(*arguments: str) -> int:
    """Run a command of dragoman in a process of its own; return its exit code."""
    command = [sys.executable, "-m", "dragoman", *arguments]
    return (await asyncio.to_thread(subprocess.run, command, stdin=subprocess.DEVNULL, check=False)).returncode


async def make_report(data: Path, screen: Screen) -> int:
    """Run the pipeline on the stopped broker's lake; return 0 if it wrote a report and found no problem."""
    if importlib.util.find_spec("pyspark") is None:
        screen.print("For a report of all this: pip install 'dragoman[spark]', and run it again.")
        return 0
    screen.print("\nThe same in tables: the data pipeline reads the facts of it all (dragoman pipeline run).")
    # Not in the demo's own directory, which is removed: the report is for reading afterwards.
    report = Path(tempfile.mkdtemp(prefix="dragoman-report-")) / "report.html"
    exit_code = await run_command("pipeline", "run", "--data", str(data), "--report", str(report))
    if exit_code or not report.exists():
        screen.print(f"The pipeline failed (exit code {exit_code}).", "bold red")
        return 1
    screen.print(f"The report: {report}", "bold green")
    return 0


class Screen:
    """A live table on a terminal; in a pipe only the sentences and the final table."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.console = console()
        self.state = Text("")
        self._live = Live(
            get_renderable=lambda: Group(self.crossings(), self.state),
            console=self.console,
            refresh_per_second=REFRESHES_A_SECOND,
            transient=True,
        )

    def __enter__(self) -> Screen:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.end_live()

    def end_live(self) -> None:
        if self._live.is_started:
            self._live.stop()

    def print(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style))

    def crossings(self) -> Table:
        table = Table(box=SIMPLE_HEAD, show_edge=False)
        table.add_column("client ↓ worker →")
        for name in NAMES:
            table.add_column(name, justify="right", min_width=8)
        for client in NAMES:
            counts = [self.tally.cells[client, worker] for worker in NAMES]
            table.add_row(client, *(Text(str(count), "green" if count else "red") for count in counts))
        return table

    def accounts(self) -> Table:
        """What each dialect promises, and the counts."""
        table = Table(box=SIMPLE_HEAD, show_edge=False)
        for name in ("client", "asked", "answered", "kept", "kept and run", "what it is promised"):
            table.add_column(name, justify="left" if name in ("client", "what it is promised") else "right")
        for name in NAMES:
            stored = self.tally.stored.get(name)
            table.add_row(
                name,
                str(self.tally.calls[name]),
                str(self.tally.answered[name]),
                "–" if stored is None else str(len(stored)),
                "–" if stored is None else str(len(stored) - self.tally.unrun(name)),
                promise_of(DIALECT_NAMES.index(name)),
            )
        return table

    def broker_line(self, counters: dict[str, Any]) -> str:
        still_open = counters["waiting"] + counters["delayed"] + counters["leased"]
        return (
            f"The broker's books: {counters['accepted']} accepted, {counters['settled']} settled, {still_open} open; "
            f"{self.tally.ran_twice} run a second time, because the kill hid whether they were done."
        )


def promise_of(dialect: int) -> str:
    stored, once = (
        crossing.client_text(dialect, feature).replace("`", "") for feature in (features.KEPT, features.ONCE)
    )
    if stored:
        return f"kept once it says so ({stored}); every call answered"
    if once:
        return f"every call answered; sent again ({once}) it runs once"
    return "every call answered; sent again when the connection is lost"
