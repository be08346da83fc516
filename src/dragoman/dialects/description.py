"""What a dialect states about itself. Broker, SDK, web page, command line and simulator know a dialect by its description; what it
can do beyond that (links to other controllers, trace contexts) is named where it is done.

A dialect is a folder. Its module `description` is imported by every program, so it imports little; the others are imported by those
programs that need them:

    sessions     the broker's side: `new_dialect(outboxes, id_seed)` and `new_session(dialect, listener, listener_no)`
    settings     `DEFAULTS` and `SETTINGS`, as dialects/setting.py explains; only if `settings_about` is not empty
    endpoints    the SDK's side: `client(setup)`, `worker(setup)`, `publisher(setup)`, `subscriber(setup)`, for the roles that it has
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final, Protocol, cast, final

from dragoman.dialects import endpoint as sdk

# Roles of the SDK.
CLIENT: Final = "client"
WORKER: Final = "worker"
PUBLISH: Final = "publish"
SUBSCRIBE: Final = "subscribe"
ROLES: Final = (CLIENT, WORKER, PUBLISH, SUBSCRIBE)

# The bytes of a listener: ZMTP messages, RISP, or plain text in lines.
ZMTP: Final = 0
RISP: Final = 1
TEXT: Final = 2

# The output of a listener. Of ANSWERS, little waits in a socket before its peer counts as not reading; NEWS waits elsewhere, in a shared
# buffer; BROADCASTS are dropped when the socket is full, so its buffer must hold one burst.
ANSWERS: Final = 0
NEWS: Final = 1
BROADCASTS: Final = 2

# Frames of a message for a person to read, (name, content), made from its accepted fact, its queue and its id.
Fact = dict[str, Any]
Frame = tuple[str, str]
FrameSketch = Callable[[Fact, str, str], list[Frame]]
UNKNOWN_ID: Final = "(an id of the broker's own)"


def body_frame(fact: Fact) -> Frame:
    return "body", f"({fact['body_size']} bytes)"


def digits_alone(fact: Fact, digits: str) -> str:
    """A message's id towards workers: the broker's own, in digits."""
    return digits or UNKNOWN_ID


def no_frames(fact: Fact, queue: str, message_id: str) -> list[Frame]:
    return []


class DialectEndpoints(Protocol):
    """The `endpoints` module of a dialect; a role that the dialect does not have is missing there."""

    def client(self, setup: sdk.EndpointSetup) -> sdk.ClientEndpoint: ...

    def worker(self, setup: sdk.EndpointSetup) -> sdk.WorkerEndpoint: ...

    def publisher(self, setup: sdk.EndpointSetup) -> sdk.PublisherEndpoint: ...

    def subscriber(self, setup: sdk.EndpointSetup) -> sdk.SubscriberEndpoint: ...


@final
class ListenerDescription:
    """One listener, or, without a port, a kind of connection that the broker itself opens."""

    def __init__(
        self,
        name: str,
        number: int,
        port: int,
        about: str,
        roles: tuple[str, ...] = (),
        wire: int = ZMTP,
        output: int = ANSWERS,
    ) -> None:
        self.name = name
        self.number = number  # begins the reply addresses of its peers, which journals store: it never changes
        self.port = port  # the default
        self.about = about
        self.roles = roles  # of the SDK
        self.wire = wire
        self.output = output


@final
class DialectDescription:
    """One dialect. The SDK and the broker's listeners work with this object; it never changes."""

    def __init__(
        self,
        name: str,
        number: int,
        package: str,
        listeners: list[ListenerDescription],
        client_words: list[tuple[int, str]],
        worker_words: list[tuple[int, str]],
        settings_about: str = "",
        takes_zmtp1: bool = False,
        shared: tuple[str, ...] = (CLIENT,),
        calls_survive: bool = False,
        answers_survive: bool = False,
        resends: bool = False,
        stays: bool = False,
        one_job: bool = False,
        expiry_s_max: float = 0.0,
        envelope_size: int = sdk.ENVELOPE_SIZE,
        hello: bytes = b"",
        queue: str = "",
        client_frames: FrameSketch = no_frames,
        worker_frames: FrameSketch = no_frames,
        worker_id: Callable[[Fact, str], str] = digits_alone,
        answer_word: str = "",
    ) -> None:
        self.name = name  # of its section of settings, in addresses and on every page
        self.number = number  # in facts, which journals and lakes store: it never changes
        self.package = package  # of its modules
        self.listeners = listeners
        self.client_words = client_words  # how its clients express each feature of dialects/features.py
        self.worker_words = worker_words
        self.settings_about = settings_about  # the heading of its section
        self.takes_zmtp1 = takes_zmtp1  # its listeners accept ZMTP 1.0, unless the settings say otherwise

        # For the SDK.
        self.by_role: dict[str, ListenerDescription] = {}  # a role that is missing here does not exist
        for listener in listeners:
            for role in listener.roles:
                self.by_role[role] = listener
        self.shared = shared  # roles that one port serves, if the address has only one
        # The broker keeps an accepted call for the client's identity, and answers queries for its state.
        self.calls_survive = calls_survive
        # The broker matches a worker's answer by its request's id alone, on whatever connection it arrives.
        self.answers_survive = answers_survive
        self.resends = resends  # the broker runs a call once however often it is sent: pending ones are sent again
        self.stays = stays  # a broker that closes the connection still settles pending work: it stays open for that
        self.one_job = one_job  # a worker connection carries one job at a time
        # A call without an expiry would expire too early, so it gets one, up to this; 0: not needed.
        self.expiry_s_max = expiry_s_max
        self.envelope_size = envelope_size  # the most bytes that are added to queue, headers and body
        # Sent first, and answered, where the dialect has no handshake: it reveals a full or silent broker.
        self.hello = hello
        self.queue = queue  # the dialect's only queue, unless the address has another; empty: any

        # For the web page: what a client sends, what a worker gets, the id it gets, and the name of its answer.
        self.client_frames = client_frames
        self.worker_frames = worker_frames
        self.worker_id = worker_id
        self.answer_word = answer_word

    def endpoints(self) -> DialectEndpoints:
        return cast(DialectEndpoints, importlib.import_module(self.package + ".endpoints"))
