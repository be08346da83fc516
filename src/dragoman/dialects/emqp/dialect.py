"""State shared by all eMQP sessions of a broker: settings, ids, header meanings, and schedulers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter

from dragoman.dialects.contract import Dialect
from dragoman.dialects.emqp.headers import HeaderMeanings
from dragoman.dialects.emqp.settings import EmqpSettings
from dragoman.dialects.session import Outboxes
from dragoman.wire.zmtp.frames import MORE

if TYPE_CHECKING:
    from dragoman.dialects.emqp.sessions import EmqpSession

HEX_PAIRS: Final[list[bytes]] = [b"%02x" % low for low in range(256)]
ID_SIZE: Final = 36
ID_FRAME_HEAD: Final = bytes([MORE, ID_SIZE])


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
        return self.id_block_of(self.id_counter) + self.id_end()

    def write_next_id(self, out: BytesWriter) -> None:
        """Write the frame of such an id, which is not a message's last."""
        out.write(ID_FRAME_HEAD)
        out.write(self.id_block_of(self.id_counter))
        out.write(self.id_end())

    def id_block_of(self, counter: int) -> bytes:
        if counter & 255 == 0:
            self.id_block = self.id_prefix + b"%010x" % (counter >> 8)
        return self.id_block

    def id_end(self) -> bytes:
        """The last two characters of an id, which is used up with them."""
        low = self.id_counter & 255
        self.id_counter += 1
        return HEX_PAIRS[low]


def id_prefix_of(random: bytes) -> bytes:
    """The first 24 characters of a uuid4, from 10 random bytes."""
    digits = random.hex().encode()
    return b"-".join([digits[:8], digits[8:12], b"4" + digits[12:15], b"a" + digits[15:18], b""])
