"""The simulated peers of each dialect, with the kinds of clients and the shapes of workers that a plan chooses from. A dialect without
peers of its own has those of `sdk`."""

from __future__ import annotations

from typing import Final, NamedTuple

from dragoman.dialects.registry import DESCRIPTIONS
from dragoman_lab.sim.peers.client import SimClient
from dragoman_lab.sim.peers.ebus import EbusClient, EbusWorker
from dragoman_lab.sim.peers.emqp import EmqpClient, EmqpWorker
from dragoman_lab.sim.peers.pingpong import PingpongClient, PingpongWorker
from dragoman_lab.sim.peers.rq import RqClient, RqWorker
from dragoman_lab.sim.peers.scale0 import Scale0Client, Scale0Worker
from dragoman_lab.sim.peers.sdk import SdkClient, SdkWorker
from dragoman_lab.sim.peers.worker import SimWorker


class SimPeers(NamedTuple):
    """Those of one dialect. What a plan should choose more often is listed more than once."""

    client: type[SimClient]
    kinds: tuple[str, ...]
    worker: type[SimWorker]
    shapes: tuple[str, ...]


# The order is part of what a seed means.
PEERS: Final[dict[str, SimPeers]] = {
    "emqp": SimPeers(
        EmqpClient, ("dealer", "dealer", "anonymous", "one_shot", "req"),
        EmqpWorker, ("original", "bytes", "bytes", "document"),
    ),
    "scale0": SimPeers(Scale0Client, ("dealer", "anonymous", "req"), Scale0Worker, ("dealer", "dealer", "req")),
    "pingpong": SimPeers(PingpongClient, ("plain", "json", "req"), PingpongWorker, ("plain", "package", "json")),
    "ebus": SimPeers(EbusClient, ("dealer", "bare", "newborn"), EbusWorker, ("bare", "framed", "short")),
    "rq": SimPeers(
        RqClient, ("small", "small", "wide"), RqWorker, ("plain", "plain", "plain", "exclusive", "spectator")
    ),
}  # fmt: skip
for _dialect in DESCRIPTIONS:
    PEERS.setdefault(_dialect.name, SimPeers(SdkClient, (_dialect.name,), SdkWorker, (_dialect.name,)))
