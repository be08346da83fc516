"""`dragoman replay-peer`: plays recorded peers against a running broker, up to the first divergence."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from dragoman.cli.admin_client import ask
from dragoman.cli.options import data_option, json_option
from dragoman.cli.show import print_json, print_lines
from dragoman_lab.recordings import captures
from dragoman_lab.recordings.captures import ReplayFailed
from dragoman_lab.recordings.player import PATIENCE_S, Player

# The port names in the recordings of the original programs.
LINKS: Final = {
    "scale0": {
        "worker": "scale0.worker", "worker_xrep": "scale0.worker", "client": "scale0.client", "pub": "scale0.publish"
    },
    "pingpong": {"backend": "pingpong.worker", "frontend": "pingpong.client"},
    "emqp": {
        "backend": "emqp.worker", "frontend": "emqp.client", "admin": "emqp.admin", "pubin": "emqp.publish",
        "pubout": "emqp.subscribe",
    },
    "ebus": {"backend": "ebus.worker", "frontend": "ebus.client", "pub": "ebus.publish", "sub": "ebus.subscribe"},
    "rq": {"": "rq"},
}  # fmt: skip


@click.command("replay-peer", context_settings={"show_default": True})
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--dialect", type=click.Choice(list(LINKS)), help="Of a recording whose ports are not named as listeners."
)
@click.option(
    "--listener", "links", multiple=True, metavar="LINK=NAME", help="Which listener a port of the recording is."
)
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="NAME=HOST:PORT",
    help="Where a listener is, if not where --data says.",
)
@click.option("--speed", type=click.FloatRange(0), default=1.0, help="Times the recorded pace; 0: no waiting.")
@click.option(
    "--patience", type=click.FloatRange(0.1), default=PATIENCE_S, help="Seconds to wait for what was recorded."
)
@data_option
@json_option
def replay_peer(
    file: Path,
    dialect: str | None,
    links: tuple[str, ...],
    addresses: tuple[str, ...],
    speed: float,
    patience: float,
    data: Path,
    as_json: bool,
) -> int:
    """Play the peers of recording FILE against a running broker and report the first divergence.

    The peers send what they sent, in that order. What the broker sends to each must be what was recorded, except heartbeats, ids
    that the broker chooses, and instants. Exit code 1 when it is not.
    """
    entries = captures.read(file)
    listeners = dict(LINKS[dialect]) if dialect else {}
    listeners |= dict(_pair(link, "LINK=NAME") for link in links)
    hosts = {name: _host_port(address) for name, address in (_pair(text, "NAME=HOST:PORT") for text in addresses)}
    needed = {listeners.get(entry.link, entry.link or "rq") for entry in entries}
    if not needed <= hosts.keys():
        hosts = {name: _host_port(address) for name, address in ask(data, "status")["listeners"].items()} | hosts
    unknown = needed - hosts.keys()
    if unknown and dialect is None and not links:
        raise ReplayFailed(
            f"no open listener is called {', '.join(sorted(unknown))}: say --dialect, or --listener LINK=NAME for each"
        )
    player = Player(entries, hosts, listeners, speed, patience)
    divergence = player.play()
    found: dict[str, Any] = {
        "said": player.sent,
        "matched": player.matched,
        "divergence": asdict(divergence) if divergence else None,
    }
    if as_json:
        print_json(found)
    elif divergence is None:
        print_lines([f"no divergence: {player.sent} messages sent, {player.matched} answers as recorded"])
    else:
        where = f"at line {divergence.line_no}" if divergence.line_no else "after the last line"
        port = f"{divergence.link or 'rq'}, connection {divergence.conn}"
        print_lines([f"divergence {where} of {file} ({port})"])
        print_lines([f"  recorded  {divergence.expected}", f"  received  {divergence.heard}"])
        print_lines([f"  before it {player.sent} messages sent, {player.matched} answers as recorded"])
    return 0 if divergence is None else 1


def _pair(text: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{text!r} is not {form}")
    return name, value


def _host_port(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    if not port.isdigit():
        raise click.UsageError(f"{address!r} is not HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)
