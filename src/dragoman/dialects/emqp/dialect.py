"""State shared by all eMQP sessions of a broker: settings, ids, header meanings, and schedulers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from dragoman.dialects.contract import Dialect
from dragoman.dialects.emqp.headers import HeaderMeanings
from dragoman.dialects.emqp.settings import EmqpSettings
from dragoman.dialects.session import Outboxes

if TYPE_CHECKING:
    from dragoman.dialects.emqp.session import EmqpSession

HEX_PAIRS: Final[list[bytes]] = [b"%02x" % low for low in range(256)]


@final
class EmqpDialect(Dialect):
    """Shared by the sessions of all eMQP listeners."""

    def __init__(self, outboxes: Outboxes, settings: EmqpSettings, id_prefix: bytes) -> None:
        super().__init__(outboxes)
        self.settings = settings
        self.id_prefix = id_prefix  # 24 bytes that begin every id of this boot
        self.id_block: bytes = b""  # the first 34 bytes, shared by 256 consecutive ids
        self.id_counter: int = 0
        self.meanings = HeaderMeanings()
        self.schedulers: dict[int, EmqpSession] = {}

    def next_id(self) -> bytes:
        """A message id of the broker, in the format of a uuid4."""
        low = self.id_counter & 255
        if low == 0:
            self.id_block = self.id_prefix + b"%010x" % (self.id_counter >> 8)
        self.id_counter += 1
        return self.id_block + HEX_PAIRS[low]


def id_prefix_of(random: bytes) -> bytes:
    """The first 24 characters of a uuid4, from 10 random bytes."""
    digits = random.hex().encode()
    return b"-".join([digits[:8], digits[8:12], b"4" + digits[12:15], b"a" + digits[15:18], b""])
