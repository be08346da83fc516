"""What the SDK needs to know of each dialect besides its endpoints: ports, and what a lost connection means for pending calls.

| dialect  | a pending call when its connection is lost                               | slots of a worker           |
|----------|--------------------------------------------------------------------------|-----------------------------|
| emqp     | the caller asks for its state on the next connection                     | one READY each              |
| rq       | may have run: AnswerLost, or sent again if it is `repeatable`            | MAX of its consumers        |
| ebus     | is sent again with the same rid: the broker runs it once                 | limited here, not there     |
| scale0   | as rq                                                                    | one PING each               |
| pingpong | as rq                                                                    | a connection each           |
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Final, Protocol, cast

from dragoman.dialects.endpoint import (
    ENVELOPE_SIZE,
    ClientEndpoint,
    EndpointSetup,
    PublisherEndpoint,
    SubscriberEndpoint,
    WorkerEndpoint,
)

CLIENT: Final = "client"
WORKER: Final = "worker"
PUBLISH: Final = "publish"
SUBSCRIBE: Final = "subscribe"
ROLES: Final = (CLIENT, WORKER, PUBLISH, SUBSCRIBE)


class DialectEndpoints(Protocol):
    """The `endpoints` module of a dialect; a role that the dialect does not have is missing there."""

    def client(self, setup: EndpointSetup) -> ClientEndpoint: ...

    def worker(self, setup: EndpointSetup) -> WorkerEndpoint: ...

    def publisher(self, setup: EndpointSetup) -> PublisherEndpoint: ...

    def subscriber(self, setup: EndpointSetup) -> SubscriberEndpoint: ...


@dataclass(frozen=True, slots=True, eq=False)
class DialectProfile:
    """The properties of one dialect that its clients and workers depend on."""

    name: str
    ports: dict[str, int]  # by role; a role that is missing here does not exist
    shared: tuple[str, ...]  # roles that one port serves, if the address has only one
    calls_survive: bool = (
        False  # the broker keeps an accepted call for the client's identity, and answers queries for its state
    )
    answers_survive: bool = (
        False  # the broker matches a worker's answer by its request's id alone, on whatever connection it arrives
    )
    resends: bool = False  # the broker runs a call once however often it is sent: pending ones are sent again
    stays: bool = False  # a broker that closes the connection still settles pending work: it stays open for that
    one_job: bool = False  # a worker connection carries one job at a time
    expiry_s_max: float = (
        0.0  # a call without an expiry would expire too early, so it gets one, up to this; 0: not needed
    )
    envelope_size: int = ENVELOPE_SIZE  # the most bytes that are added to queue, headers and body
    hello: bytes = (
        b""  # sent first, and answered, where the dialect has no handshake: it reveals a full or silent broker
    )
    queue: str = ""  # the dialect's only queue, unless the address has another; empty: any

    def listener(self, role: str) -> str:
        """The broker's name for the listener of a role."""
        return self.name if self.name == "rq" else f"{self.name}.{role}"

    def endpoints(self) -> DialectEndpoints:
        """The dialect's endpoints, imported on first use."""
        return cast(DialectEndpoints, importlib.import_module(f"dragoman.dialects.{self.name}.endpoints"))


EMQP: Final = DialectProfile(
    "emqp",
    {CLIENT: 47291, WORKER: 47290, PUBLISH: 47298, SUBSCRIBE: 47299},
    (CLIENT, WORKER, PUBLISH),
    calls_survive=True,
    answers_survive=True,
    envelope_size=256,
)
RQ: Final = DialectProfile("rq", dict.fromkeys(ROLES, 13700), ROLES, stays=True, hello=b"\x05")  # PING
EBUS: Final = DialectProfile(
    "ebus",
    {CLIENT: 5000, WORKER: 5001, PUBLISH: 5002, SUBSCRIBE: 5003},
    (CLIENT, WORKER),
    resends=True,
    expiry_s_max=86_400.0,  # the broker's default is 3 s; a caller waits longer than that, but not for ever
)
SCALE0: Final = DialectProfile("scale0", {CLIENT: 8080, WORKER: 8081}, (CLIENT,), stays=True)
PINGPONG: Final = DialectProfile("pingpong", {CLIENT: 6001, WORKER: 6002}, (CLIENT,), one_job=True, queue="pingpong")
PROFILES: Final = {profile.name: profile for profile in (EMQP, RQ, EBUS, SCALE0, PINGPONG)}
