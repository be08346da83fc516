"""Converts a job's options to those of a client endpoint."""

from __future__ import annotations

import math
from typing import Final

from dragoman.client import features
from dragoman.client.address import Address
from dragoman.client.options import Options, dedupe_text
from dragoman.dialects.endpoint import CallOptions
from dragoman.limits import MESSAGE_SIZE_MAX

NS_PER_S: Final = 1_000_000_000


def call_options(
    address: Address,
    queue: str,
    options: Options,
    wants_reply: bool,
    wait_s: float,
    headers: str = "",
    dedupe: str | None = None,
) -> CallOptions:
    """Raises NotInDialect for what the dialect cannot express. `dedupe` is the call's own key; without one, a call that needs only the
    broker's acknowledgement, or has `once`, uses its id as the key."""
    profile = address.profile
    if not wants_reply:
        features.require(profile.name, features.KEPT)
    if headers:
        features.require(profile.name, features.HEADERS)
    features.check_options(address, options)
    made = CallOptions(features.queue_at(address, queue).encode("utf-8", "surrogateescape"))
    made.wants_reply = wants_reply
    if options.retries is not None:
        made.retries = options.retries
    if options.timeout_s:
        made.timeout_ns = _ns(options.timeout_s)
    if options.expires_s is not None:
        made.expires_ns = _ns(options.expires_s)
    elif profile.expiry_s_max:
        made.expires_ns = _ns(min(wait_s, profile.expiry_s_max) if math.isfinite(wait_s) else profile.expiry_s_max)
    made.delay_ns = _ns(options.delay_s)
    made.priority = options.priority
    made.is_guaranteed = options.guarantee
    if dedupe is not None:
        made.dedupe = dedupe_text(dedupe).encode()
    else:
        made.dedupes_by_id = options.once or not wants_reply
    made.headers = headers.encode("utf-8", "surrogateescape")
    around_size = profile.envelope_size + len(made.queue) + len(made.headers) + len(made.dedupe)
    made.body_size_max = MESSAGE_SIZE_MAX - around_size
    return made


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)
