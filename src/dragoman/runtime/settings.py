"""From the operator's words (seconds, names) to what the compiled rooms decide by (nanoseconds, bytes, small ints)."""

from __future__ import annotations

from dragoman.core.settings import CATCH_UP_ALL, CATCH_UP_NONE, CATCH_UP_ONE, CoreSettings
from dragoman.dialects.ebus.dialect import EbusSettings
from dragoman.dialects.emqp.dialect import EmqpSettings
from dragoman.dialects.pingpong.dialect import PingpongSettings
from dragoman.dialects.pingpong.words import FORM_NAMES
from dragoman.dialects.registry import Dialects
from dragoman.dialects.rq.dialect import RqSettings
from dragoman.dialects.scale0.dialect import Scale0Settings
from dragoman.runtime.config import Config
from dragoman.runtime.config.listeners import LISTENERS

CATCH_UPS = {"none": CATCH_UP_NONE, "one": CATCH_UP_ONE, "all": CATCH_UP_ALL}


def ns(seconds: float) -> int:
    return int(seconds * 1_000_000_000)


def apply_core(config: Config, settings: CoreSettings) -> None:
    """Also used at a reload: the core reads its settings each time it decides."""
    queues = config.queues
    settings.head_max = queues.head_max
    settings.queue_messages_max = config.limits.queue_messages_max
    settings.backoff_initial_ns = ns(queues.backoff_initial_s)
    settings.backoff_max_ns = ns(queues.backoff_max_s)
    settings.quarantine_after = queues.quarantine_after
    settings.starve_turns = queues.starve_turns
    settings.timeout_ns = ns(queues.timeout_s)
    settings.dedupe_window_ns = ns(queues.dedupe_window_s)
    settings.dedupe_keys_max = queues.dedupe_keys_max
    settings.forget_ns = ns(queues.forget_s)
    settings.catch_up = CATCH_UPS[config.schedules.catch_up]
    settings.timezone = config.schedules.timezone
    settings.dismissed_ns = ns(config.workers.dismissed_s)


def legacy_listeners(config: Config) -> set[str]:
    """The listeners where ZMTP 1.0 is taken, each by its name."""
    allowed = config.security.legacy_greetings
    return {name for name in LISTENERS if name in allowed or name.partition(".")[0] + ".*" in allowed}


def apply_dialects(config: Config, dialects: Dialects) -> None:
    apply_scale0(config, dialects.scale0.settings)
    apply_pingpong(config, dialects.pingpong.settings)
    apply_emqp(config, dialects.emqp.settings)
    apply_ebus(config, dialects.ebus.settings)
    apply_rq(config, dialects.rq.settings)
    for dialect in dialects.all:
        dialect.reconfigured()


def apply_scale0(config: Config, settings: Scale0Settings) -> None:
    scale0 = config.scale0
    settings.tree = scale0.config_file.tree
    settings.heartbeat_ns = ns(scale0.heartbeat_s)
    settings.heartbeats_missed = scale0.heartbeats_missed
    settings.skew_ns = ns(scale0.skew_s)
    settings.offences_max = scale0.offences_max
    settings.ban_ns = ns(scale0.ban_s)
    settings.broadcast_ns = ns(scale0.broadcast_s)


def apply_pingpong(config: Config, settings: PingpongSettings) -> None:
    pingpong = config.pingpong
    settings.queue = pingpong.queue.encode()
    settings.form = FORM_NAMES.index(pingpong.form)
    settings.worker_expire_ns = ns(pingpong.worker_expire_s)
    settings.send_exit = pingpong.send_exit


def apply_ebus(config: Config, settings: EbusSettings) -> None:
    ebus = config.ebus
    settings.stales_ns = ns(ebus.stales_s)
    settings.heartbeat_ns = ns(ebus.heartbeat_s)
    settings.ping_ns = ns(ebus.ping_s)
    settings.pings_max = ebus.pings_max
    settings.worker_requests_max = ebus.worker_requests_max
    settings.is_json = ebus.data == "json"
    settings.answers_kept_ns = ns(ebus.answers_kept_s)
    settings.answers_max = ebus.answers_max
    settings.answers_size_max = ebus.answers_size_max


def apply_rq(config: Config, settings: RqSettings) -> None:
    rq = config.rq
    settings.ping_ns = ns(rq.ping_s)
    settings.pong_ns = ns(rq.pong_s)
    settings.greeting_ns = ns(config.limits.handshake_s)
    settings.retries = rq.retries
    settings.consumer_messages_max = rq.consumer_messages_max
    settings.librq_safe = rq.librq_safe


def apply_emqp(config: Config, settings: EmqpSettings) -> None:
    emqp = config.emqp
    settings.heartbeat_ns = ns(emqp.heartbeat_s)
    settings.worker_lost_ns = ns(emqp.worker_lost_s)
    settings.json_only = emqp.json_only
    settings.external_scheduler = emqp.scheduler == "external"
    settings.remote_stop = emqp.remote_stop
    settings.default_queue = emqp.default_queue.encode()
    settings.default_weight = emqp.default_weight
    settings.timeout_grace_ns = ns(emqp.timeout_grace_s)
    settings.original_timeout_ns = ns(emqp.original_timeout_s)
