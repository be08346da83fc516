"""What all eMQP sessions of a broker share: settings, ids, header meanings, and the beat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from dragoman.dialects.contract import Dialect
from dragoman.dialects.emqp.headers import HeaderMeanings
from dragoman.dialects.session import Hub
from dragoman.model.units import SECOND_NS

if TYPE_CHECKING:
    from dragoman.dialects.emqp.session import EmqpSession

HEX_PAIRS: Final[list[bytes]] = [b"%02x" % low for low in range(256)]


@final
class EmqpSettings:
    """The original's numbers as defaults; docs/reference/config.md explains each."""

    def __init__(self) -> None:
        self.heartbeat_ns: int = 3 * SECOND_NS
        self.worker_lost_ns: int = 5 * SECOND_NS
        self.json_only: bool = True
        self.external_scheduler: bool = False
        self.remote_stop: bool = False
        self.default_queue: bytes = b"default"
        self.default_weight: int = 10
        # The original's worker says that a job ran out of time up to a second late, and its REPLY takes up to another.
        self.timeout_grace_ns: int = 3 * SECOND_NS
        # The original ends every job after this long by itself; a lease on it without a bound would outlive a crashed process.
        self.original_timeout_ns: int = 300 * SECOND_NS


@final
class EmqpDialect(Dialect):
    """Shared by the sessions of all eMQP listeners."""

    def __init__(self, hub: Hub, settings: EmqpSettings, id_prefix: bytes) -> None:
        super().__init__(hub)
        self.settings = settings
        self.id_prefix = id_prefix  # 24 bytes that begin every id of this boot
        self.id_block: bytes = b""  # the first 34 bytes, shared by 256 ids in a row
        self.id_counter: int = 0
        self.meanings = HeaderMeanings()
        self.schedulers: dict[int, EmqpSession] = {}

    def next_id(self) -> bytes:
        """A message id of the broker's own, in the shape of a uuid4."""
        low = self.id_counter & 255
        if low == 0:
            self.id_block = self.id_prefix + b"%010x" % (self.id_counter >> 8)
        self.id_counter += 1
        return self.id_block + HEX_PAIRS[low]


def id_prefix_of(random: bytes) -> bytes:
    """The first 24 characters of a uuid4, from 10 random bytes."""
    digits = random.hex().encode()
    return b"-".join([digits[:8], digits[8:12], b"4" + digits[12:15], b"a" + digits[15:18], b""])
