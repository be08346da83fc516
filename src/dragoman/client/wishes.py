"""From a call's options to the wish a client side takes, for every dialect but eMQP, whose headers say more."""

from __future__ import annotations

import math
from typing import Final

from dragoman.client.address import Address
from dragoman.client.features import KEPT, check_options, queue_at, require
from dragoman.client.options import Options
from dragoman.client.tongue import EBUS
from dragoman.dialects.sides import Wish

NS_PER_S: Final = 1_000_000_000
# ebus lets a request expire after 3 s unless it says otherwise. A caller waits longer than that, and not for ever.
STALES_S_MAX: Final = 86_400.0


def wish_of(address: Address, options: Options, wants_reply: bool, wait_s: float) -> Wish:
    """Raises NotInDialect for what the dialect has no word for."""
    if not wants_reply:
        require(address.tongue.name, KEPT)
    check_options(address, options)
    wish = Wish(queue_at(address, options.queue).encode())
    wish.wants_reply = wants_reply
    wish.retries = -1 if options.retries is None else options.retries
    if options.expires_s is not None:
        wish.expires_ns = _ns(options.expires_s)
    elif address.tongue is EBUS:
        wish.expires_ns = _ns(min(wait_s, STALES_S_MAX) if math.isfinite(wait_s) else STALES_S_MAX)
    return wish


def _ns(seconds: float) -> int:
    return max(1, round(seconds * NS_PER_S))
