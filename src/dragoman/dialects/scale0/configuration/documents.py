"""The meaning of the broker's configuration tree: which worker serves what, which other brokers exist, and what each peer receives.

broker                            this broker
    identity = main
        address = tcp://h1:8081       the address for workers; `client` is the one for clients
        client = tcp://h1:8080
        state = accepting             or refusing: no new peers, no new work
        default_heartbeat_interval = 10
        services = mail               what it serves; none given: everything
        family = blue
        fallback_families = green
    peers
        broker = tcp://h2:8081    another broker: the same fields, and `load` from 0 (idle) to 1
            client = tcp://h2:8080
            load = 0.2
worker                            one entry for each configured worker
    identity = w1
    services = mail
    family_config = blue          the name of a `family` entry, or the fields themselves
    prefered_broker = tcp://h1:8081
family = blue                     the configuration of all workers of a family
    anything = it needs
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import Final, final

from dragoman.dialects.scale0.configuration.notations import write_json
from dragoman.dialects.scale0.configuration.tree import Node
from dragoman.errors import BadDocument

ADDRESS: Final = re.compile(r"tcp://.+:([0-9]{1,5})", re.DOTALL)
ACCEPTING: Final = "accepting"
OUTSIDERS: Final = 1000  # the rank of brokers whose family is not listed


@final
class OtherBroker:
    """Another broker."""

    def __init__(self, node: Node, rank: int) -> None:
        self.address: str = checked_address(node.value)
        self.client: str = checked_address(node.text("client") or node.value)
        self.services: list[str] = node.texts("services")
        self.is_accepting: bool = (node.text("state") or ACCEPTING) == ACCEPTING
        self.rank = rank  # own family first, then the fallback families in their order, then the others
        self.load: float = fraction(node.text("load"))
        self.is_live: bool = True


@final
class Documents:
    """The configuration, and the documents for each peer."""

    def __init__(self, tree: Node, heartbeat_s: float) -> None:
        self.tree = tree
        broker = tree.first("broker")
        self.identity: str = broker.text("identity")
        self.address: str = checked_address(broker.text("address")) if broker.text("address") else ""
        self.client: str = broker.text("client") or self.address
        self.services: list[str] = broker.texts("services")
        self.is_accepting: bool = (broker.text("state") or ACCEPTING) == ACCEPTING
        self.heartbeat_s: float = seconds(broker.text("default_heartbeat_interval"), heartbeat_s)
        self.workers: dict[str, Node] = {worker.text("identity"): worker for worker in tree.all("worker")}
        self.families: dict[str, Node] = {family.value: family for family in tree.all("family")}
        families = [broker.text("family"), *broker.texts("fallback_families")]
        self.others: list[OtherBroker] = []
        for node in broker.first("peers").all("broker"):
            family_name = node.text("family") or families[0]
            self.others.append(OtherBroker(node, families.index(family_name) if family_name in families else OUTSIDERS))
        self.version: str = version_of(tree, self.heartbeat_s)

    def services_of(self, identity: str, offered: list[bytes]) -> list[bytes]:
        """The services of a worker: those of its entry, else those it offered."""
        worker = self.workers.get(identity)
        if worker is None:
            return offered
        return [name.encode() for name in worker.texts("services")] or offered

    def document_for(self, identity: str, offered: list[bytes], is_worker: bool) -> Node:
        """The document that one peer receives."""
        made = Node()
        if identity:
            made.put("identity", quoted(identity))
        made.put("default_heartbeat_interval", f"{self.heartbeat_s:g}")
        if self.identity:
            made.put("broker", self.identity)
        worker = self.workers.get(identity) if is_worker else None
        names = [name.decode("utf-8", "replace") for name in self.services_of(identity, offered)]
        for name in names if is_worker else self.services:
            made.put("services", quoted(name))
        if worker is not None:
            preferred = worker.text("prefered_broker") or worker.text("preferred_broker")
            if preferred:
                made.put("prefered_broker", preferred)
            for family in worker.all("family_config"):
                shared = self.families.get(family.value)
                made.add("family_config", family if shared is None or family.children else shared)
        return made


def version_of(tree: Node, heartbeat_s: float) -> str:
    """Twelve hex digits that change with the content."""
    return hashlib.sha256(write_json(tree) + b"%r" % heartbeat_s).hexdigest()[:12]


def quoted(text: str) -> str:
    """A peer's text as a value, without characters that not every format can express."""
    return "".join([char for char in text if char >= " " and char not in "\"'#\ufffe\uffff"]).strip()


def checked_address(text: str) -> str:
    found = ADDRESS.fullmatch(text)
    if found is None or int(found[1]) > 65535:
        raise BadDocument(0, f"{text or 'a broker without an address'}: tcp://HOST:PORT is wanted")
    return text


def fraction(text: str) -> float:
    load = number_in(text) if text else 0.0
    if not 0.0 <= load <= 1.0:
        raise BadDocument(0, f"load = {text}: a number from 0 to 1 is wanted")
    return load


def seconds(text: str, default_s: float) -> float:
    value = number_in(text) if text else default_s
    if text and not 0.0 < value <= 86400.0:
        raise BadDocument(0, f"default_heartbeat_interval = {text}: seconds, more than 0 and at most a day, are wanted")
    return value


def number_in(text: str) -> float:
    """NaN if the text is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan
