"""The `dragoman demo` command."""

from __future__ import annotations

import asyncio

import click


@click.command()
@click.option("--seconds", default=40.0, show_default=True, type=click.FloatRange(2, 3600), help="How long it crosses.")
@click.option(
    "--report/--no-report", default=True, help="End with the data pipeline's report, if PySpark is installed."
)
def demo(seconds: float, report: bool) -> int:
    """Show all five dialects at work.

    Starts a broker with a journal of its own, a worker and a client of each dialect, and lets every client ask every worker. In the
    middle the broker is killed with -9 and started again. At the end it counts: nothing that was accepted may be lost. Everything it
    made is removed, but for the report: the data pipeline turns the facts of it all into tables and one page to look at. The exit code is
    1 if anything was lost.
    """
    from dragoman.cli.demo.play import play

    try:
        return asyncio.run(play(seconds, report))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
