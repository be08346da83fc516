"""The settings of each dialect. Defaults come from its settings class, which has the values of the original program."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Literal

from dragoman import limits
from dragoman.dialects.ebus.settings import EbusSettings
from dragoman.dialects.emqp.settings import EmqpSettings
from dragoman.dialects.pingpong.settings import PingpongSettings
from dragoman.dialects.pingpong.words import FORM_NAMES
from dragoman.dialects.rq.settings import RqSettings
from dragoman.dialects.scale0.settings import Scale0Settings
from dragoman.runtime.config import kinds
from dragoman.runtime.config.kinds import Document, setting
from dragoman.runtime.config.targets import Target, coded, encoded, nanoseconds, unchanged

EBUS: Final = EbusSettings()
EMQP: Final = EmqpSettings()
PINGPONG: Final = PingpongSettings()
RQ: Final = RqSettings()
SCALE0: Final = Scale0Settings()
DOCUMENT: Final = Target(Scale0Settings, "tree", Document("", SCALE0.tree), attrgetter("tree"))


@dataclass(frozen=True, slots=True)
class Scale0Config:
    """Scale0: configuration is negotiated, one PING buys one task."""

    config_file: Document = setting(  # noqa: RUF009 - it makes a dataclass field
        DOCUMENT,
        kinds.document(),
        "The configuration that peers are sent, in JSON, XML or ZPL by the file's suffix; read again at each reload, and when it "
        "was edited. "
        "Empty = none but the interval below.",
        reloadable=True,
    )
    heartbeat_s: float = setting(
        nanoseconds(SCALE0, "heartbeat_ns"),
        kinds.seconds(more_than_zero=True),
        "The heartbeat interval of workers that say none, unless the configuration has default_heartbeat_interval.",
        reloadable=True,
    )
    heartbeats_missed: int = setting(
        unchanged(SCALE0, "heartbeats_missed"),
        kinds.integer(1, 1000),
        "A worker silent for so many of its intervals leaves the line.",
        reloadable=True,
    )
    skew_s: float = setting(
        nanoseconds(SCALE0, "skew_ns"),
        kinds.seconds(),
        "A peer whose `time` is further than this from the broker's clock is told so (503) and not served.",
        reloadable=True,
    )
    offences_max: int = setting(
        unchanged(SCALE0, "offences_max"),
        kinds.integer(1, 10**9),
        "Messages that mean nothing here, within ban_s, before their sender is held for hostile (444).",
        reloadable=True,
    )
    ban_s: float = setting(
        nanoseconds(SCALE0, "ban_ns"), kinds.seconds(), "So long a hostile peer is not heard.", reloadable=True
    )
    broadcast_s: float = setting(
        nanoseconds(SCALE0, "broadcast_ns"),
        kinds.seconds(more_than_zero=True),
        "The newest original's broadcast says PING this often.",
        reloadable=True,
    )
    look_s: float = setting(
        5.0,
        kinds.seconds(),
        "The other brokers of the configuration are looked at this often: who does not answer is not recommended, and "
        "who tells its load is known by that. 0 = never.",
        reloadable=True,
    )


@dataclass(frozen=True, slots=True)
class PingpongConfig:
    """The ping-pong dialogue; defaults are the original's. All its workers serve one queue."""

    queue: str = setting(encoded(PINGPONG, "queue"), kinds.name(), "The queue of its clients and workers.")
    form: Literal["auto", "plain", "package", "json"] = setting(
        coded(PINGPONG, "form", {word: code for code, word in enumerate(FORM_NAMES)}),
        kinds.one_of("auto", "plain", "package", "json"),
        "How jobs are worded for workers; auto goes by what a worker says, and is plain until then.",
    )
    worker_expire_s: float = setting(
        nanoseconds(PINGPONG, "worker_expire_ns"),
        kinds.seconds(more_than_zero=True),
        "An idle worker silent for so long gets no job before it speaks again. A busy one may be silent.",
        reloadable=True,
    )
    send_exit: bool = setting(
        unchanged(PINGPONG, "send_exit"),
        kinds.switch(),
        "Tell workers EXIT when the broker drains or the operator dismisses one. Only workers that follow the document "
        "end then; the original's take it for a job.",
        reloadable=True,
    )


@dataclass(frozen=True, slots=True)
class EmqpConfig:
    """The eMQP dialect (EventMQ's protocol); defaults are EventMQ's own."""

    heartbeat_s: float = setting(
        nanoseconds(EMQP, "heartbeat_ns"),
        kinds.seconds(more_than_zero=True),
        "The broker sends HEARTBEAT this often.",
        reloadable=True,
    )
    worker_lost_s: float = setting(
        nanoseconds(EMQP, "worker_lost_ns"),
        kinds.seconds(more_than_zero=True),
        "A worker silent for so long is lost and its jobs go elsewhere. More than heartbeat_s.",
        reloadable=True,
    )
    json_only: bool = setting(
        unchanged(EMQP, "json_only"),
        kinds.switch(),
        "Offer workers that INFORMed in EventMQ's own shape only bodies that are UTF-8 JSON; any other body resets "
        "EventMQ's job manager.",
        reloadable=True,
    )
    scheduler: Literal["builtin", "external"] = setting(
        coded(EMQP, "external_scheduler", {"builtin": False, "external": True}),
        kinds.one_of("builtin", "external"),
        "Who keeps schedules: the broker, or EventMQ's scheduler program that has INFORMed.",
    )
    remote_stop: bool = setting(
        unchanged(EMQP, "remote_stop"),
        kinds.switch(),
        "DISCONNECT on the admin port (EventMQ's `emq-cli shutdown`) stops the broker. false = it is answered with the name of this "
        "setting. Everybody who reaches the port may say it.",
        reloadable=True,
    )
    default_queue: str = setting(encoded(EMQP, "default_queue"), kinds.name(), "The queue meant by an empty name.")
    default_weight: int = setting(
        unchanged(EMQP, "default_weight"), kinds.integer(0, 10**9), "The weight of a queue that INFORM gives none."
    )
    timeout_grace_s: float = setting(
        nanoseconds(EMQP, "timeout_grace_ns"),
        kinds.seconds(),
        "Added to a job's own timeout on EventMQ's workers, which say up to 2 s late that it ran out.",
        reloadable=True,
    )
    original_timeout_s: float = setting(
        nanoseconds(EMQP, "original_timeout_ns"),
        kinds.seconds(),
        "Bound on a job without a timeout on EventMQ's workers, which end every job by then themselves; a crashed one "
        "of theirs is never answered. 0 = queues.timeout_s.",
        reloadable=True,
    )


@dataclass(frozen=True, slots=True)
class EbusConfig:
    """EBUS: services and channels; defaults are the original's own."""

    stales_s: float = setting(
        nanoseconds(EBUS, "stales_ns"),
        kinds.seconds(more_than_zero=True),
        "A request whose client does not say `stales ms` expires after so long, waiting or running.",
        reloadable=True,
    )
    heartbeat_s: float = setting(
        nanoseconds(EBUS, "heartbeat_ns"),
        kinds.seconds(),
        "The broker sends its workers HEARTBEAT this often. 0 = only in answer to PING.",
        reloadable=True,
    )
    ping_s: float = setting(
        nanoseconds(EBUS, "ping_ns"),
        kinds.seconds(more_than_zero=True),
        "A silent worker is sent PING this often.",
        reloadable=True,
    )
    pings_max: int = setting(
        unchanged(EBUS, "pings_max"),
        kinds.integer(0, 10**6),
        'A worker that has let so many PINGs pass is sent away ("no heartbeat") and its requests go to others.',
        reloadable=True,
    )
    worker_requests_max: int = setting(
        unchanged(EBUS, "worker_requests_max"),
        kinds.integer(1, 100_000),
        "Requests one worker has out at most. One that says a smaller number in its READY has that.",
        reloadable=True,
    )
    data: Literal["bson", "json"] = setting(
        coded(EBUS, "is_json", {"bson": False, "json": True}),
        kinds.one_of("bson", "json"),
        "The form of the broker's own data: zlib over BSON `{l: value}` as the newest original, or JSON as the document.",
        reloadable=True,
    )
    answers_kept_s: float = setting(
        nanoseconds(EBUS, "answers_kept_ns"),
        kinds.seconds(),
        "How a request ended is remembered for so long, or three times its `stales ms` if that is longer: the same rid "
        "sent again is answered from memory, never run again.",
        reloadable=True,
    )
    answers_max: int = setting(
        unchanged(EBUS, "answers_max"),
        kinds.integer(0),
        "Ended requests remembered at most. The oldest are forgotten first, up to half of them at once.",
        reloadable=True,
    )
    answers_size_max: int = setting(
        unchanged(EBUS, "answers_size_max"),
        kinds.size(0),
        "Bytes of data, asked and answered, that those may hold.",
        reloadable=True,
    )


@dataclass(frozen=True, slots=True)
class RqConfig:
    """RQ over RISP; defaults are the original's own where it has any."""

    ping_s: float = setting(
        nanoseconds(RQ, "ping_ns"),
        kinds.seconds(more_than_zero=True),
        "A node not heard of for so long is sent PING.",
        reloadable=True,
    )
    pong_s: float = setting(
        nanoseconds(RQ, "pong_ns"),
        kinds.seconds(more_than_zero=True),
        "A node that says nothing for so long after PING is idle: it keeps what it holds and gets no new work until it speaks.",
        reloadable=True,
    )
    retries: int = setting(
        unchanged(RQ, "retries"),
        kinds.integer(-1, 255),
        "How many more consumers may try a request without RETRIES after one died or gave it back. -1 = as many as it takes.",
        reloadable=True,
    )
    consumer_messages_max: int = setting(
        unchanged(RQ, "consumer_messages_max"),
        kinds.integer(1, limits.RQ_IDS_MAX),
        "Messages one consumer of a queue holds at a time, whatever MAX it asks for; the bound of one that asks for none.",
        reloadable=True,
    )
    upstreams: tuple[str, ...] = setting(
        (),
        kinds.places(13700),
        "Other controllers to consume from what workers serve here: with MAX 1 and low priority, answers go back to them.",
    )
    upstream_retry_s: float = setting(
        5.0,
        kinds.seconds(more_than_zero=True),
        "How long to wait before connecting again to one that is full, refuses, is silent or has closed.",
        reloadable=True,
    )
    librq_safe: bool = setting(
        unchanged(RQ, "librq_safe"),
        kinds.switch(),
        "Spare programs built on the original's library what aborts them: broadcasts are skipped, a connection over the "
        "limit is closed without SERVER_FULL, empty bodies are refused. Each is counted.",
    )
