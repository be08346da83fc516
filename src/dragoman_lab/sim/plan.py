"""What a seed decides before the run: the broker's settings, its peers, and the failures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, Literal, NamedTuple

from dragoman.dialects.registry import DESCRIPTIONS, DIALECTS_BY_NAME
from dragoman.journal.settings import JournalSettings
from dragoman.limits import LIVE_STEP_COUNT, LOAD_STEP_SIZE
from dragoman.runtime.config import Config
from dragoman_lab.sim.peers.ebus import EbusClient, EbusWorker
from dragoman_lab.sim.peers.emqp import EmqpClient, EmqpWorker
from dragoman_lab.sim.peers.pingpong import PingpongClient, PingpongWorker
from dragoman_lab.sim.peers.rq import RqClient, RqWorker
from dragoman_lab.sim.peers.scale0 import Scale0Client, Scale0Worker
from dragoman_lab.sim.peers.sdk import SdkClient, SdkWorker
from dragoman_lab.sim.peers.sim_peers import SimClient, SimWorker

DIRECTORY = "/data/journal"
# Steps that the largest body takes: with pauses between them, more would delay all peers for seconds.
LOAD_STEPS_MAX = 10


# The broker's settings, and the values that a seed chooses from. Limits are small, so that a short run reaches them.
SETTINGS: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "queues": {
        "head_max": (1, 2, 5, 100_000),
        "backoff_initial_s": (0.2,),
        "backoff_max_s": (1.0,),
        "quarantine_after": (0, 2, 3),
        "starve_turns": (1, 3, 10),
        "timeout_s": (0.0, 0.0, 5.0),
        "dedupe_window_s": (1.0, 600.0),
        "dedupe_keys_max": (0, 2, 1000),
    },
    "limits": {
        "queue_messages_max": (0, 0, 0, 15),
        "uncommitted_max": (64 << 20, 4096),
        "out_buffer_max": (64 << 20, 16_384),
        "handshake_s": (2.0, 10.0),
        "memory_max": (256 << 20, 256 << 20, 4 << 20),  # never the machine's: the same seed is the same run anywhere
    },
    "emqp": {
        "worker_lost_s": (3.0, 5.0),
        "original_timeout_s": (6.0,),
        "timeout_grace_s": (0.5,),
        "json_only": (True,),
    },
    "scale0": {
        "offences_max": (2, 10),
        "ban_s": (1.0,),
    },
    "pingpong": {
        "worker_expire_s": (1.5, 3.0),
    },
    "ebus": {
        "worker_requests_max": (2, 1005),
        "pings_max": (2, 5),
        "data": ("bson", "json"),
    },
    "rq": {
        "ping_s": (1.5, 15.0),
        "pong_s": (1.0,),
        "retries": (0, 3),
        "consumer_messages_max": (3, 10_000),
        "librq_safe": (True, *[False] * 9),
    },
    "schedules": {
        "catch_up": ("one", "none", "all"),
    },
}


class SimPeers(NamedTuple):
    """The simulated peers of one dialect, with the kinds of clients and the shapes of workers that a plan chooses from. What a plan should choose more often is listed more than once."""

    client: type[SimClient]
    kinds: tuple[str, ...]
    worker: type[SimWorker]
    shapes: tuple[str, ...]


# A dialect without peers of its own has those of `sdk`. The order is part of what a seed means.
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


@dataclass(frozen=True)
class Plan:
    """The parameters of one run; by default without peers and failures."""

    config: Config
    journal: JournalSettings
    queues: tuple[bytes, ...] = ()
    fills: tuple[int, ...] = ()  # extra bytes of bodies
    unfit_share: float = 0.0
    seconds: int = 0
    requests_max: int = 0
    clients: tuple[tuple[str, str], ...] = ()  # dialect, kind
    workers: tuple[tuple[str, str, str, int], ...] = ()  # dialect, shape, temper, slots
    rude: int = 0
    crashes: int = 0
    troubles: int = 0  # full disks, failing syncs, clock jumps
    sync_ms: tuple[int, ...] = (1,)
    legacy_share: float = 0.0  # of connections over ZMTP 2.0 or 1.0
    disk_size: int | None = None  # total disk space during the whole run
    corruptions: int = 0  # bits that flip on disk
    garbage: int = 0  # peers that follow no protocol
    bursts: tuple[int, ...] = (1, 1, 1, 2, 8)  # requests that a client sends at once
    load_step_size: int = LOAD_STEP_SIZE  # bytes of bodies that one turn reads back from disk
    live_step: int = LIVE_STEP_COUNT  # open messages that one sweep of upkeep checks
    pause_share: float = 0.0  # of turns with a load in progress after which something else happens first

    @property
    def durability(self) -> str:
        return self.journal.durability

    @property
    def remembers_keys(self) -> bool:
        """Whether a dedupe key is remembered for longer than any run takes."""
        return self.config.queues.dedupe_window_s > 100 and self.config.queues.dedupe_keys_max > 100


def config_of(chance: Random) -> Config:
    config = Config()
    for section, choices in SETTINGS.items():
        picked = {name: chance.choice(values) for name, values in choices.items()}
        if section in config.dialects:
            dialect = replace(config.dialects[section], **picked)
            config = replace(config, dialects={**config.dialects, section: dialect})
        else:
            config = replace(config, **{section: replace(getattr(config, section), **picked)})
    return config


def plan_of(chance: Random) -> Plan:
    durability: Literal["memory", "os", "disk"] = chance.choice(("os", "disk", "disk", "os", "disk"))
    if chance.random() < 0.03:
        durability = "memory"
    config = config_of(chance)
    size_max = chance.choice((70_000, 150_000, 300_000, 1 << 30))
    # Nothing here damages stored data unnoticed, so a scrub has nothing to find (tests/runtime/test_scrub).
    journal = JournalSettings(DIRECTORY, durability, segment_size=65536, size_max=size_max, scrub_rate=0)
    queues = (b"default", b"mail", b"reports")[: chance.randint(1, 3)]
    # One or two dialects alone find their own bugs; many together, their interactions.
    dialects = chance.sample(list(PEERS), k=chance.choice((1, 2, 3, 5, 5)))
    queues += tuple(DIALECTS_BY_NAME[name].queue.encode() for name in dialects if DIALECTS_BY_NAME[name].queue)
    fills: tuple[int, ...] = chance.choice(((0,), (0, 50), (200, 2000), (0, 0, 20_000)))
    clients, workers = chance.randint(1, 5), chance.randint(1, 5)
    is_flood = chance.random() < 0.03
    tempers = ("good", "good", "moody", "dying")
    return Plan(
        config=config,
        journal=journal,
        queues=queues,
        fills=fills,
        unfit_share=chance.choice((0.0, 0.0, 0.3)),
        seconds=chance.randint(3, 10),
        requests_max=2000 if is_flood else chance.choice((20, 50, 120, 200)),
        clients=tuple((name, chance.choice(PEERS[name].kinds)) for name in chance.choices(dialects, k=clients)),
        workers=tuple(
            (name, chance.choice(PEERS[name].shapes), chance.choice(tempers), chance.choice((1, 2, 10)))
            for name in chance.choices(dialects, k=workers)
        ),
        rude=chance.choice((0, 0, 1, 2)),
        crashes=0 if durability == "memory" else chance.choice((0, 1, 1, 2, 4)),
        troubles=0 if durability == "memory" else chance.choice((0, 0, 1, 2)),
        sync_ms=chance.choice(((1,), (1, 5, 30), (2, 400))),
        # The spare segment is the reserve of a full disk: what one tick takes in must fit there, as it does with the default settings.
        disk_size=None if is_flood or max(fills) > 2000 else chance.choice((None, None, None, None, 1_500_000)),
        corruptions=0 if durability == "memory" else chance.choice((0, 0, 0, 1, 4)),
        legacy_share=chance.choice((0.0, 0.0, 0.3)),
        garbage=chance.choice((0, 0, 0, 1, 2)),
        bursts=(8, 100, 300) if is_flood else (1, 1, 1, 2, 8),
    )


def with_steps(plan: Plan, chance: Random) -> Plan:
    """The same plan; in some worlds small reads, so that most bodies are loaded in steps. `chance` is a separate generator: the rest of a
    seed's meaning does not depend on this."""
    step_size = chance.choice((LOAD_STEP_SIZE, 30, 300, 3000))
    if step_size == LOAD_STEP_SIZE:
        return plan
    journal = replace(plan.journal, read_whole_size=chance.choice((100, 5000, 65_536)))
    step_size = max(step_size, max(plan.fills) // LOAD_STEPS_MAX)
    live_step, pause_share = chance.choice((3, 30, LIVE_STEP_COUNT)), chance.choice((0.0, 0.1, 0.5))
    return replace(plan, journal=journal, load_step_size=step_size, live_step=live_step, pause_share=pause_share)
