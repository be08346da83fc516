"""Who may come: every kind of client and worker of every dialect."""

from __future__ import annotations

from dragoman.testing.sim.client import SimClient
from dragoman.testing.sim.ebus import EbusClient, EbusWorker
from dragoman.testing.sim.emqp import EmqpClient, EmqpWorker
from dragoman.testing.sim.pingpong import PingpongClient, PingpongWorker
from dragoman.testing.sim.rq import RqClient, RqWorker
from dragoman.testing.sim.scale0 import Scale0Client, Scale0Worker
from dragoman.testing.sim.worker import SimWorker

CLIENTS: dict[str, type[SimClient]] = {
    "emqp": EmqpClient,
    "scale0": Scale0Client,
    "pingpong": PingpongClient,
    "ebus": EbusClient,
    "rq": RqClient,
}
WORKERS: dict[str, type[SimWorker]] = {
    "emqp": EmqpWorker,
    "scale0": Scale0Worker,
    "pingpong": PingpongWorker,
    "ebus": EbusWorker,
    "rq": RqWorker,
}
