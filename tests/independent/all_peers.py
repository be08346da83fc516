"""The independent peers by dialect. All clients have `ask` and `outcome`, all workers `take` and `answer`."""

from __future__ import annotations

from types import ModuleType

from tests.independent import ebus_peers, emqp_peers, pingpong_peers, rq_peers, scale0_peers

PEERS: dict[str, ModuleType] = {
    "scale0": scale0_peers,
    "pingpong": pingpong_peers,
    "emqp": emqp_peers,
    "ebus": ebus_peers,
    "rq": rq_peers,
}
PUBLISHING = ["emqp", "ebus", "rq"]
