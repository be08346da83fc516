"""Every setting of the broker: name with its unit, default, allowed values, purpose, and the attribute it sets.

Settings are declared only here and in `dialects`. `dragoman config show`, docs/reference/config.md and the
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
from dragoman.journal.settings import JournalSettings
from dragoman.runtime.config import kinds
from dragoman.runtime.config.dialects import DIALECT_SECTIONS
from dragoman.runtime.config.listeners import Listener, default_listeners
from dragoman.runtime.config.targets import Setting, coded, nanoseconds, section, setting

TOKEN: Final = kinds.secret(limits.TOKEN_SIZE_MIN)
CORE: Final = CoreSettings()
JOURNAL: Final = JournalSettings(directory="")
DATA: Final = Setting("The data directory; one broker at a time uses it.", kinds.directory(), Path("./data"))


@section(JOURNAL)
class JournalConfig:
    """What the broker stores, and how durably."""

    durability: Literal["memory", "os", "disk"] = setting(
        "What must have happened to a fact before anything it caused leaves the broker: disk = on stable storage "
        "(survives power loss), os = written to the file (survives kill -9), memory = nothing is kept."
    )
    segment_size: int = setting("Bytes in one journal file.", kinds.size(limits.SEGMENT_SIZE_MIN))
    size_max: int = setting(
        "Bytes of all journal files. Over it, the oldest settled ones go; when live messages alone fill it, new work "
        "is refused with JOURNAL_FULL.",
        kinds.size(2**20),
        reloadable=True,
    )
    age_max_s: float = setting("Settled journal files older than this go. 0 = kept until size_max.", reloadable=True)
    free_min: int = setting(
        "Bytes that stay free on the journal's disk: with less, the oldest settled journal files go, once the lake has them. New work is "
        "refused only when no room is left at all.",
        kinds.size(0),
        reloadable=True,
    )
    scrub_rate: int = setting(
        "Bytes a second of sealed journal files that are proved again in the background, so that damage is found before the data is "
        "needed. 0 = never.",
        kinds.size(0),
    )
    scrub_interval_s: float = setting("How often all of them are proved, at most.", kinds.seconds(1.0))
    index: Literal["auto", "off"] = setting(
        "auto = a process beside the broker indexes the journal, so that a trace finds any message at once (about 11 bytes a "
        "fact); off = traces read the whole journal. `dragoman journal index` does it by hand.",
        default="auto",
    )


@section()
class LakeConfig:
    """The journal's facts as Parquet files, for Spark and other readers; written by a process of its own."""

    mode: Literal["auto", "on", "off"] = setting(
        "auto = written if pyarrow is installed (dragoman[lake], dragoman[spark]), on = refuse to start without it, off = not "
        "written; `dragoman seal` can do it later from what the journal still keeps.",
        default="auto",
    )
    root: str = setting(
        "A directory, or an address that pyarrow's file systems take (s3://…). Empty = DATA/lake.", default=""
    )
    bodies: Literal["none", "hash", "full"] = setting(
        "What the lake holds of bodies: their size, size and hash, or all.", default="hash"
    )
    interval_s: float = setting(
        "The longest a committed fact waits for the lake.", kinds.seconds(more_than_zero=True), default=5.0
    )
    rows_max: int = setting(
        "Facts in one file of `incoming`; with so many it is written at once.", kinds.integer(1000), default=250_000
    )
    incoming_keep_s: float = setting(
        "How long files that were compacted into `history` stay in `incoming`, for streams that are behind.",
        default=86_400.0,
    )
    file_mode: int = setting(
        "Permissions of the lake's files in a local directory, whatever the umask is. Everything else that the broker writes is for its own user "
        "alone.",
        kinds.mode(0o600),
        default=limits.LAKE_FILE_MODE,
    )
    directory_mode: int = setting(
        "Permissions of the lake's directories that the broker makes. With the default a Spark of another user of the group reads it.",
        kinds.mode(0o700),
        default=limits.LAKE_DIRECTORY_MODE,
    )


@section()
class OtelConfig:
    """Traces of messages for an OpenTelemetry collector, exported by a child process that runs only if an endpoint is set."""

    endpoint: str = setting(
        "A collector that takes OTLP over HTTP; /v1/traces is put behind it. Empty = no traces.",
        kinds.web_address(),
        default="",
    )
    headers: tuple[tuple[str, str], ...] = setting(
        "Headers of every request to the collector, such as an API key.", kinds.secret_headers(), default=()
    )
    service_name: str = setting("The `service.name` of the spans.", kinds.name(), default="dragoman")
    sample_ratio: float = setting(
        "The share of messages that is traced, chosen by their numbers. A client's `traceparent` decides for its own messages.",
        kinds.ratio(),
        default=1.0,
    )
    interval_s: float = setting(
        "The longest a finished span waits to be sent with others.", kinds.seconds(more_than_zero=True), default=1.0
    )
    spans_max: int = setting(
        "Spans in one request; with so many it is sent at once.", kinds.integer(1, 10_000), default=512
    )
    open_max: int = setting(
        "Open messages whose client's trace is remembered; beyond it, spans are made only from the fact that closes a message.",
        default=limits.OTEL_OPEN_MAX,
    )
    compression: Literal["none", "gzip"] = setting(
        "Compression of requests: gzip for a collector behind a slow link.", default="none"
    )


@section(CORE, reloadable=True)
class LimitsConfig:
    """Limits on what peers may use; they bound the broker's memory."""

    connections_max: int = setting(
        "Open connections on all listeners together. Each listener is guaranteed an equal part of a tenth of them. When all are in use, the "
        "oldest that has not finished its handshake goes for a new one.",
        kinds.integer(1),
        default=10_000,
    )
    address_connections_max: int = setting(
        "Open connections from one address (IPv6: from one /64). More are refused with TOO_MANY_FROM_ADDRESS. 0 = no limit.",
        default=limits.ADDRESS_CONNECTIONS_MAX,
    )
    exempt_addresses: tuple[str, ...] = setting(
        "Addresses and networks to which address_connections_max does not apply: this machine, proxies, gateways of a whole fleet.",
        kinds.networks(),
        default=("127.0.0.0/8", "::1"),
    )
    message_size_max: int = setting(
        "Bytes of one message, all frames together; checked when announced, before anything is buffered.",
        kinds.size(),
        default=limits.MESSAGE_SIZE_MAX,
    )
    memory_max: int = setting(
        "Bytes of memory for messages, their queues, news and buffers. Beyond shares of it bodies stay on disk, old news is dropped and "
        "peers that do not read, or do not finish a message, are cut off; near it senders are paused, then refused with MEMORY_FULL. A "
        "message may take an eighth of it. 0 = a quarter of what the machine or the control group allows, at most 4 GiB.",
        kinds.size(limits.MEMORY_SIZE_MIN, or_zero=True),
        default=0,
    )
    unfinished_s: float = setting(
        "A message that is cut short must go on, by 64 KiB or to its end, within this time; else its connection ends.",
        kinds.seconds(more_than_zero=True),
        default=60.0,
    )
    handshake_s: float = setting(
        "A connection that has not finished its handshake by then is closed. rq has none: there any operation counts, and a silent node is "
        "sent PING after half of this time. On the web page the first request must be whole by then.",
        kinds.seconds(more_than_zero=True),
        target=nanoseconds(RqSettings(), "greeting_ns"),
    )
    out_buffer_max: int = setting(
        "Bytes waiting to be sent to one connection, beside one message of message_size_max. A client slower than that is not "
        "read from, then closed; a subscriber loses news from half of it on.",
        kinds.size(2**10),
        default=64 * 2**20,
    )
    uncommitted_max: int = setting(
        "Bytes of facts not yet committed. Above it client sockets are not read; workers still are.",
        kinds.size(2**10),
        default=limits.UNCOMMITTED_SIZE_MAX,
    )
    queue_messages_max: int = setting("Waiting messages in one queue; more are refused with QUEUE_FULL. 0 = no limit.")


@section(CORE, reloadable=True)
class QueuesConfig:
    """Defaults for messages whose client sets nothing else."""

    head_max: int = setting(
        "Messages of one priority of a queue kept whole in memory; the rest live on disk.",
        kinds.integer(1),
    )
    timeout_s: float = setting("Hard bound on one attempt, whatever the worker sends. 0 = no limit.")
    backoff_initial_s: float = setting("Wait before the second attempt; doubles with each further one.")
    backoff_max_s: float = setting("The longest such wait.")
    quarantine_after: int = setting(
        "A message whose holders died this often (distinct workers) is quarantined with the evidence. 0 = never."
    )
    starve_turns: int = setting("A low weight is served at least once in so many turns.", kinds.integer(1))
    dedupe_window_s: float = setting("How long a dedupe key is remembered, also over restarts.")
    forget_s: float = setting(
        "A queue that has no message, no worker, no schedule, no dedupe key and no pause, and was not used for so long, is forgotten (and "
        "created again when it is named). Not within the first hour after a start, unless this is shorter. 0 = never."
    )
    dedupe_keys_max: int = setting("Dedupe keys remembered per queue; the oldest goes first.")


@section(CORE, reloadable=True)
class WorkersConfig:
    """Workers, whatever they speak."""

    dismissed_s: float = setting(
        "How long a dismissed worker that is known by its identity and host alone is kept out after its connection ended. "
        "`dragoman worker` is kept out until it is restarted or admitted."
    )


@section(CORE)
class SchedulesConfig:
    """Messages made by schedules."""

    timezone: str = setting("The zone in which cron expressions are read.", kinds.timezone())
    catch_up: Literal["one", "none", "all"] = setting(
        "Instants missed while the broker was down make one message, none, or one each.",
        target=coded(CORE, "catch_up", {"one": CATCH_UP_ONE, "none": CATCH_UP_NONE, "all": CATCH_UP_ALL}),
    )


@section(reloadable=True)
class DrainConfig:
    """Shutdown."""

    limit_s: float = setting("After SIGTERM, how long workers may finish what they hold.", default=30.0)


@section()
class SecurityConfig:
    """Who may reach the broker."""

    insecure: bool = setting(
        "Allow listeners that other machines can reach although there is no authentication.", default=False
    )
    legacy_greetings: tuple[str, ...] = setting(
        "Listeners that take peers of ZMTP 1.0 (libzmq 2.x), whose greeting proves little about who sends it. ZMTP 2.0 and 3.x are taken "
        "everywhere.",
        kinds.zmtp_listeners(),
        default=tuple(f"{described.name}.*" for described in DESCRIPTIONS if described.takes_zmtp1),
        reloadable=True,
    )


@section()
class WebConfig:
    """The web page (listener `http`). Without a token everyone who can reach it is an operator."""

    token: str = setting("Its bearer may see and change everything. Empty = no such role.", TOKEN, default="")
    read_token: str = setting(
        "Its bearer may see everything and change nothing. Empty = no such role.", TOKEN, default=""
    )
    hosts: tuple[str, ...] = setting(
        "Names under which browsers may ask for the page, beside loopback's own: others are refused, so that no foreign page "
        "can reach it by a name of its own (DNS rebinding).",
        kinds.names(),
        default=(),
    )
    metrics_queues_max: int = setting(
        "Queues that have series of their own in /metrics, the busiest first; the rest are added up under one name.",
        default=200,
    )
    past_s: float = setting(
        "For how long after its last sample the page's past (charts, lines of queues, totals) is continued by a broker that starts again; "
        "after a longer pause the page begins anew. 0 = nothing is saved, and the page knows only what it sees itself.",
        default=3600.0,
    )


@section(reloadable=True)
class LogConfig:
    """What the broker logs to stderr: lifecycle and faults, never single messages."""

    level: Literal["debug", "info", "warning", "error"] = setting("The lowest level that is logged.", default="info")
    format: Literal["auto", "text", "json"] = setting("auto = text on a terminal, JSON otherwise.", default="auto")


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, given by the operator or defaults. `sources` has the source of each given key."""

    data: Path = DATA.field()
    listen: Mapping[str, Listener] = field(default_factory=default_listeners)
    journal: JournalConfig = field(default_factory=JournalConfig)
    lake: LakeConfig = field(default_factory=LakeConfig)
    otel: OtelConfig = field(default_factory=OtelConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    queues: QueuesConfig = field(default_factory=QueuesConfig)
    workers: WorkersConfig = field(default_factory=WorkersConfig)
    # The section of each dialect by its name.
    dialects: Mapping[str, Any] = field(
        default_factory=lambda: {name: made() for name, made in DIALECT_SECTIONS.items()}
    )
    schedules: SchedulesConfig = field(default_factory=SchedulesConfig)
    drain: DrainConfig = field(default_factory=DrainConfig)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    web: WebConfig = field(default_factory=WebConfig)
    log: LogConfig = field(default_factory=LogConfig)
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)


SECTIONS: Final[dict[str, type]] = {}
for each in dataclasses.fields(Config):
    if each.name == "dialects":
        SECTIONS.update(DIALECT_SECTIONS)
    elif dataclasses.is_dataclass(each.default_factory):
        SECTIONS[each.name] = each.default_factory


def settings_of(section: type) -> dict[str, Setting]:
    """Return a section's settings by name, in their order."""
    return {f.name: f.metadata["setting"] for f in dataclasses.fields(section) if "setting" in f.metadata}


def all_settings() -> dict[str, Setting]:
    """Return every setting by its full key (`journal.durability`); listeners are not among them."""
    found = {"data": settings_of(Config)["data"]}
    for section_name, section_type in SECTIONS.items():
        found |= {f"{section_name}.{key}": declared for key, declared in settings_of(section_type).items()}
    return found
