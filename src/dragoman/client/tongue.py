"""What the SDK must know of each dialect besides its sides: ports, and what a lost connection means there.

| dialect  | a call under way when its connection is lost                            | slots of a worker           |
|----------|--------------------------------------------------------------------------|-----------------------------|
| emqp     | its state is asked for on the next connection (caller.py)                | one READY each              |
| rq       | may have run: AnswerLost, or sent again if it is `repeatable`            | MAX of its consumers        |
| ebus     | is sent again under its rid: the broker runs it once                     | held back here, not there   |
| scale0   | as rq                                                                    | one PING each               |
| pingpong | as rq                                                                    | a connection each           |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CLIENT: Final = "client"
WORKER: Final = "worker"
PUBLISH: Final = "publish"
SUBSCRIBE: Final = "subscribe"
ROLES: Final = (CLIENT, WORKER, PUBLISH, SUBSCRIBE)


@dataclass(frozen=True, slots=True, eq=False)
class Tongue:
    """One dialect, as its clients and workers see it."""

    name: str
    ports: dict[str, int]  # of each role; a role that is missing here does not exist
    shared: tuple[str, ...]  # roles that one port serves, if the address names only one
    resends: bool = False  # the same call sent twice is run once, so an open one is sent again after a lost connection
    stays: bool = False  # a broker that sends us away still settles what it has: the old connection is kept for that
    one_job: bool = False  # a worker connection carries one job at a time
    hello: bytes = (
        b""  # said first and answered, where the dialect has no handshake: a full or silent broker shows by it
    )
    queue: str = ""  # the only queue there is, unless the address names another; empty: any

    def listener(self, role: str) -> str:
        """The broker's own name for the listener of a role."""
        return self.name if self.name == "rq" else f"{self.name}.{role}"


EMQP: Final = Tongue(
    "emqp", {CLIENT: 47291, WORKER: 47290, PUBLISH: 47298, SUBSCRIBE: 47299}, (CLIENT, WORKER, PUBLISH)
)
RQ: Final = Tongue("rq", dict.fromkeys(ROLES, 13700), ROLES, stays=True, hello=b"\x05")  # PING
EBUS: Final = Tongue(
    "ebus", {CLIENT: 5000, WORKER: 5001, PUBLISH: 5002, SUBSCRIBE: 5003}, (CLIENT, WORKER), resends=True
)
SCALE0: Final = Tongue("scale0", {CLIENT: 8080, WORKER: 8081}, (CLIENT,), stays=True)
PINGPONG: Final = Tongue("pingpong", {CLIENT: 6001, WORKER: 6002}, (CLIENT,), one_job=True, queue="pingpong")
TONGUES: Final = {tongue.name: tongue for tongue in (EMQP, RQ, EBUS, SCALE0, PINGPONG)}
