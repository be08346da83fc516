"""`dragoman check`: one line and an exit code, as monitoring plugins print them (Nagios, Icinga, Sensu, a health check of your own).

    DRAGOMAN WARNING: 812 waiting (from 500 on); oldest 14 s | waiting=812;500;1000;0 oldest=14.2s;;;0 …

The reason comes first. After `|` come all numbers as `name=value;warn;crit;min`, with or without a threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Final

import click
from click import FloatRange, option

from dragoman.cli.admin_client import AdminClient
from dragoman.cli.options import all_options, data_option
from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.model.phrases import duration
from dragoman.printable import printable

OK: Final = 0
WARNING: Final = 1
CRITICAL: Final = 2
UNKNOWN: Final = 3
SEVERITY: Final = (OK, WARNING, UNKNOWN, CRITICAL)  # an UNKNOWN must not hide a CRITICAL
LEVEL_NAMES: Final = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
THRESHOLDS: Final = {
    "depth": "so many messages wait",
    "age": "a message has waited for so many seconds",
    "lag": "so many facts are not in the lake yet",
}


@dataclass(frozen=True)
class Bounds:
    """Thresholds of one number, inclusive; None: no threshold."""

    warn: float | None
    crit: float | None


@dataclass
class Verdict:
    """The worst level found, and the reasons in the order they were found."""

    level: int = OK
    reasons: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)

    def measure(self, name: str, value: float, unit: str, bounds: Bounds, reason: str) -> None:
        warn, crit = ("" if bound is None else _plain(bound) for bound in (bounds.warn, bounds.crit))
        self.numbers.append(f"{name}={_plain(value)}{unit};{warn};{crit};0")
        for level, bound in ((CRITICAL, bounds.crit), (WARNING, bounds.warn)):
            if bound is not None and value >= bound:
                self.complain(level, f"{reason} (from {_plain(bound)} on)")
                return

    def complain(self, level: int, reason: str) -> None:
        if SEVERITY.index(level) > SEVERITY.index(self.level):
            self.reasons.insert(0, reason)  # the worst comes first
            self.level = level
        else:
            self.reasons.append(reason)


def _plain(value: float) -> str:
    """All digits and no exponent: not every consumer of plugin output reads exponents."""
    return f"{Decimal(repr(value)).normalize():f}"


class Misused(click.UsageError):
    """Bad usage; click's exit code for it would mean CRITICAL here."""

    exit_code = UNKNOWN


class Plugin(click.Command):
    """A command that exits with UNKNOWN on bad usage."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise Misused(error.message, ctx) from error


@click.command(cls=Plugin)
@all_options(
    *(
        option(f"--{name}-{end}", type=FloatRange(0), help=f"{verb} when {text}.")
        for name, text in THRESHOLDS.items()
        for end, verb in (("warn", "Warn"), ("crit", "Critical"))
    )
)
@option("--stuck", is_flag=True, help="Warn when anything does not move although it should.")
@option("--queue", default="", help="Look at this queue alone.")
@data_option
def check(data: Path, queue: str, stuck: bool, **thresholds: float | None) -> int:
    """Say whether all is well, in one line, as monitoring plugins do.

    Exit codes are those of the plugins, not of the other commands: 0 OK, 1 WARNING, 2 CRITICAL (also when no broker answers), 3 UNKNOWN.
    A broker that refuses new work is critical, whatever the options.
    """
    try:
        with AdminClient(data) as client:
            verdict = _judge(client, queue, stuck, thresholds)
    except (AdminUnreachable, AdminRefused) as error:
        verdict = Verdict(CRITICAL if isinstance(error, AdminUnreachable) else UNKNOWN, [str(error)])
    reasons = printable("; ".join(verdict.reasons)).replace("|", "/")  # `|` separates the sentence from the numbers
    numbers = f" | {' '.join(verdict.numbers)}" if verdict.numbers else ""
    print(f"DRAGOMAN {LEVEL_NAMES[verdict.level]}: {reasons}{numbers}")
    return verdict.level


def _judge(client: AdminClient, queue: str, stuck: bool, thresholds: dict[str, float | None]) -> Verdict:
    verdict = Verdict()
    status = client.ask("status")
    counters = status["counters"]
    found = [row for page in client.pages("queue_tallies", queue=queue) for row in page["queues"]]
    waiting = sum(row["waiting"] for row in found)
    begun = [row["oldest_ns"] for row in found if row["oldest_ns"]]
    oldest_s = max((counters["now_ns"] - min(begun)) / 1e9, 0.0) if begun else 0.0
    if counters["refusing"]:
        verdict.complain(CRITICAL, f"new work is refused: {counters['refusing']}")
    bounds = {name: Bounds(thresholds[f"{name}_warn"], thresholds[f"{name}_crit"]) for name in THRESHOLDS}
    verdict.measure("waiting", waiting, "", bounds["depth"], f"{waiting} waiting")
    verdict.measure("oldest", round(oldest_s, 1), "s", bounds["age"], f"oldest {duration(int(oldest_s * 1e9))}")
    if status["lake"]:
        lag = status["lake"]["behind"]
        verdict.measure("lag", lag, "", bounds["lag"], f"{lag} facts not sealed")
    elif bounds["lag"] != Bounds(None, None):
        verdict.complain(UNKNOWN, "there is no lag to judge: this broker writes no lake (lake.mode is off)")
    findings = [finding for finding in client.ask("stuck")["findings"] if not queue or finding["queue"] in ("", queue)]
    verdict.measure("stuck", len(findings), "", Bounds(None, None), "")
    if stuck:
        for finding in findings:
            verdict.complain(WARNING, finding["line"])
    if not verdict.reasons:
        where = f"in {queue}" if queue else f"in {len(found)} queues, {counters['workers']} workers"
        verdict.reasons.append(f"{waiting} waiting {where}, oldest {duration(int(oldest_s * 1e9))}")
    return verdict
