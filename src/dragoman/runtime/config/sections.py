"""Every setting of the broker: name with its unit, default, allowed values, purpose, and the attribute it sets.

Settings are declared only here, in `keeping` and in `dialects`. `dragoman config show`, docs/reference/config.md and the
error messages are generated from them, and `targets` says how a value reaches the part of the broker that uses it. Listeners are in
`listeners`, because their keys are names, not fields. The docstring of a section is printed in the generated files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from dragoman import limits
from dragoman.core.settings import CATCH_UP_ALL, CATCH_UP_NONE, CATCH_UP_ONE, CoreSettings
from dragoman.dialects.registry import DESCRIPTIONS
from dragoman.dialects.rq.settings import RqSettings
from dragoman.runtime.config import kinds
from dragoman.runtime.config.dialects import DIALECT_SECTIONS
from dragoman.runtime.config.keeping import JournalConfig, LakeConfig
from dragoman.runtime.config.kinds import setting
from dragoman.runtime.config.listeners import Listener, default_listeners
from dragoman.runtime.config.targets import coded, nanoseconds, unchanged

CORE: Final = CoreSettings()


@dataclass(frozen=True, slots=True)
class OtelConfig:
    """Traces of messages for an OpenTelemetry collector, exported by a child process that runs only if an endpoint is set."""

    endpoint: str = setting(
        "",
        kinds.web_address(),
        "A collector that takes OTLP over HTTP; /v1/traces is put behind it. Empty = no traces.",
    )
    headers: tuple[tuple[str, str], ...] = setting(
        (), kinds.secret_headers(), "Headers of every request to the collector, such as an API key."
    )
    service_name: str = setting("dragoman", kinds.name(), "The `service.name` of the spans.")
    sample_ratio: float = setting(
        1.0,
        kinds.ratio(),
        "The share of messages that is traced, chosen by their numbers. A client's `traceparent` decides for its own messages.",
    )
    interval_s: float = setting(
        1.0, kinds.seconds(more_than_zero=True), "The longest a finished span waits to be sent with others."
    )
    spans_max: int = setting(512, kinds.integer(1, 10_000), "Spans in one request; with so many it is sent at once.")
    open_max: int = setting(
        limits.OTEL_OPEN_MAX,
        kinds.integer(0),
        "Open messages whose client's trace is remembered; beyond it, spans are made only from the fact that closes a message.",
    )
    compression: Literal["none", "gzip"] = setting(
        "none", kinds.one_of("none", "gzip"), "Compression of requests: gzip for a collector behind a slow link."
    )


@dataclass(frozen=True, slots=True)
class LimitsConfig:
    """Limits on what peers may use; they bound the broker's memory."""

    connections_max: int = setting(
        10_000,
        kinds.integer(1),
        "Open connections on all listeners together. Each listener is guaranteed an equal part of a tenth of them. When all are in use, the "
        "oldest that has not finished its handshake goes for a new one.",
        reloadable=True,
    )
    address_connections_max: int = setting(
        limits.ADDRESS_CONNECTIONS_MAX,
        kinds.integer(0),
        "Open connections from one address (IPv6: from one /64). More are refused with TOO_MANY_FROM_ADDRESS. 0 = no limit.",
        reloadable=True,
    )
    exempt_addresses: tuple[str, ...] = setting(
        ("127.0.0.0/8", "::1"),
        kinds.networks(),
        "Addresses and networks to which address_connections_max does not apply: this machine, proxies, gateways of a whole fleet.",
        reloadable=True,
    )
    message_size_max: int = setting(
        limits.MESSAGE_SIZE_MAX,
        kinds.size(),
        "Bytes of one message, all frames together; checked when announced, before anything is buffered.",
        reloadable=True,
    )
    memory_max: int = setting(
        0,
        kinds.size_or_zero(limits.MEMORY_SIZE_MIN),
        "Bytes of memory for messages, their queues, news and buffers. Beyond shares of it bodies stay on disk, old news is dropped and "
        "peers that do not read, or do not finish a message, are cut off; near it senders are paused, then refused with MEMORY_FULL. A "
        "message may take an eighth of it. 0 = a quarter of what the machine or the control group allows, at most 4 GiB.",
        reloadable=True,
    )
    unfinished_s: float = setting(
        60.0,
        kinds.seconds(more_than_zero=True),
        "A message that is cut short must go on, by 64 KiB or to its end, within this time; else its connection ends.",
        reloadable=True,
    )
    handshake_s: float = setting(
        nanoseconds(RqSettings(), "greeting_ns"),
        kinds.seconds(more_than_zero=True),
        "A connection that has not finished its handshake by then is closed. rq has none: there any operation counts, and a silent node is "
        "sent PING after half of this time. On the web page the first request must be whole by then.",
        reloadable=True,
    )
    out_buffer_max: int = setting(
        64 * 2**20,
        kinds.size(2**10),
        "Bytes waiting to be sent to one connection, beside one message of message_size_max. A client slower than that is not "
        "read from, then closed; a subscriber loses news from half of it on.",
        reloadable=True,
    )
    uncommitted_max: int = setting(
        limits.UNCOMMITTED_SIZE_MAX,
        kinds.size(2**10),
        "Bytes of facts not yet committed. Above it client sockets are not read; workers still are.",
        reloadable=True,
    )
    queue_messages_max: int = setting(
        unchanged(CORE, "queue_messages_max"),
        kinds.integer(0),
        "Waiting messages in one queue; more are refused with QUEUE_FULL. 0 = no limit.",
        reloadable=True,
    )


@dataclass(frozen=True, slots=True)
class QueuesConfig:
    """Defaults for messages whose client sets nothing else."""

    head_max: int = setting(
        unchanged(CORE, "head_max"),
        kinds.integer(1),
        "Messages of one line (a client in a queue, by priority) kept whole in memory; the rest live on disk.",
        reloadable=True,
    )
    timeout_s: float = setting(
        nanoseconds(CORE, "timeout_ns"),
        kinds.seconds(),
        "Hard bound on one attempt, whatever the worker sends. 0 = no limit.",
        reloadable=True,
    )
    backoff_initial_s: float = setting(
        nanoseconds(CORE, "backoff_initial_ns"),
        kinds.seconds(),
        "Wait before the second attempt; doubles with each further one.",
        reloadable=True,
    )
    backoff_max_s: float = setting(
        nanoseconds(CORE, "backoff_max_ns"), kinds.seconds(), "The longest such wait.", reloadable=True
    )
    quarantine_after: int = setting(
        unchanged(CORE, "quarantine_after"),
        kinds.integer(0),
        "A message whose holders died this often (distinct workers) is quarantined with the evidence. 0 = never.",
        reloadable=True,
    )
    starve_turns: int = setting(
        unchanged(CORE, "starve_turns"),
        kinds.integer(1),
        "A low weight is served at least once in so many turns.",
        reloadable=True,
    )
    dedupe_window_s: float = setting(
        nanoseconds(CORE, "dedupe_window_ns"),
        kinds.seconds(),
        "How long a dedupe key is remembered, also over restarts.",
        reloadable=True,
    )
    forget_s: float = setting(
        nanoseconds(CORE, "forget_ns"),
        kinds.seconds(),
        "A queue that has no message, no worker, no schedule, no dedupe key and no pause, and was not used for so long, is forgotten (and "
        "created again when it is named). Not within the first hour after a start, unless this is shorter. 0 = never.",
        reloadable=True,
    )
    dedupe_keys_max: int = setting(
        unchanged(CORE, "dedupe_keys_max"),
        kinds.integer(0),
        "Dedupe keys remembered per queue; the oldest goes first.",
        reloadable=True,
    )


@dataclass(frozen=True, slots=True)
class WorkersConfig:
    """Workers, whatever they speak."""

    dismissed_s: float = setting(
        nanoseconds(CORE, "dismissed_ns"),
        kinds.seconds(),
        "How long a dismissed worker that is known by its identity and host alone is kept out after its connection ended. "
        "`dragoman worker` is kept out until it is restarted or admitted.",
        reloadable=True,
    )


@dataclass(frozen=True, slots=True)
class SchedulesConfig:
    """Messages made by schedules."""

    timezone: str = setting(
        unchanged(CORE, "timezone"), kinds.timezone(), "The zone in which cron expressions are read."
    )
    catch_up: Literal["one", "none", "all"] = setting(
        coded(CORE, "catch_up", {"one": CATCH_UP_ONE, "none": CATCH_UP_NONE, "all": CATCH_UP_ALL}),
        kinds.one_of("one", "none", "all"),
        "Instants missed while the broker was down make one message, none, or one each.",
    )


@dataclass(frozen=True, slots=True)
class DrainConfig:
    """Shutdown."""

    limit_s: float = setting(
        30.0, kinds.seconds(), "After SIGTERM, how long workers may finish what they hold.", reloadable=True
    )


@dataclass(frozen=True, slots=True)
class SecurityConfig:
    """Who may reach the broker."""

    insecure: bool = setting(
        False,
        kinds.switch(),
        "Allow listeners that other machines can reach although there is no authentication.",
    )
    legacy_greetings: tuple[str, ...] = setting(
        tuple(f"{described.name}.*" for described in DESCRIPTIONS if described.takes_zmtp1),
        kinds.zmtp_listeners(),
        "Listeners that take peers of ZMTP 1.0 (libzmq 2.x), whose greeting proves little about who sends it. ZMTP 2.0 and 3.x are taken "
        "everywhere.",
        reloadable=True,
    )


@dataclass(frozen=True, slots=True)
class WebConfig:
    """The web page (listener `http`). Without a token everyone who can reach it is an operator."""

    token: str = setting(
        "", kinds.secret(limits.TOKEN_SIZE_MIN), "Its bearer may see and change everything. Empty = no such role."
    )
    read_token: str = setting(
        "",
        kinds.secret(limits.TOKEN_SIZE_MIN),
        "Its bearer may see everything and change nothing. Empty = no such role.",
    )
    hosts: tuple[str, ...] = setting(
        (),
        kinds.names(),
        "Names under which browsers may ask for the page, beside loopback's own: others are refused, so that no foreign page "
        "can reach it by a name of its own (DNS rebinding).",
    )
    metrics_queues_max: int = setting(
        200,
        kinds.integer(0),
        "Queues that have series of their own in /metrics, the busiest first; the rest are added up under one name.",
    )
    past_s: float = setting(
        3600.0,
        kinds.seconds(),
        "For how long after its last sample the page's past (charts, lines of queues, totals) is continued by a broker that starts again; "
        "after a longer pause the page begins anew. 0 = nothing is saved, and the page knows only what it sees itself.",
    )


@dataclass(frozen=True, slots=True)
class LogConfig:
    """What the broker logs to stderr: lifecycle and faults, never single messages."""

    level: Literal["debug", "info", "warning", "error"] = setting(
        "info",
        kinds.one_of("debug", "info", "warning", "error"),
        "The lowest level that is logged.",
        reloadable=True,
    )
    format: Literal["auto", "text", "json"] = setting(
        "auto", kinds.one_of("auto", "text", "json"), "auto = text on a terminal, JSON otherwise.", reloadable=True
    )


def default_dialects() -> dict[str, Any]:
    return {name: section() for name, section in DIALECT_SECTIONS.items()}


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, given by the operator or defaults. `sources` has the source of each given key."""

    data: Path = setting(Path("./data"), kinds.directory(), "The data directory; one broker at a time uses it.")
    listen: Mapping[str, Listener] = field(default_factory=default_listeners)
    journal: JournalConfig = field(default_factory=JournalConfig)
    lake: LakeConfig = field(default_factory=LakeConfig)
    otel: OtelConfig = field(default_factory=OtelConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    queues: QueuesConfig = field(default_factory=QueuesConfig)
    workers: WorkersConfig = field(default_factory=WorkersConfig)
    dialects: Mapping[str, Any] = field(default_factory=default_dialects)  # the section of each dialect by its name
    schedules: SchedulesConfig = field(default_factory=SchedulesConfig)
    drain: DrainConfig = field(default_factory=DrainConfig)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    web: WebConfig = field(default_factory=WebConfig)
    log: LogConfig = field(default_factory=LogConfig)
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)


SECTIONS: Final[dict[str, type]] = {
    "journal": JournalConfig,
    "lake": LakeConfig,
    "otel": OtelConfig,
    "limits": LimitsConfig,
    "queues": QueuesConfig,
    "workers": WorkersConfig,
    **DIALECT_SECTIONS,
    "schedules": SchedulesConfig,
    "drain": DrainConfig,
    "security": SecurityConfig,
    "web": WebConfig,
    "log": LogConfig,
}


def settings_of(section: type) -> dict[str, kinds.Setting]:
    """Return a section's settings by name, in their order."""
    return {f.name: f.metadata["setting"] for f in dataclasses.fields(section) if "setting" in f.metadata}


def all_settings() -> dict[str, kinds.Setting]:
    """Return every setting by its full key (`journal.durability`); listeners are not among them."""
    found = {"data": settings_of(Config)["data"]}
    for section, section_type in SECTIONS.items():
        found |= {f"{section}.{key}": declared for key, declared in settings_of(section_type).items()}
    return found
