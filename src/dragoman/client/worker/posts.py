"""The post that speaks an address's dialect: eMQP's is tuned and says more, the others share one."""

from __future__ import annotations

from dragoman.client.address import Address
from dragoman.client.tongue import EMQP
from dragoman.client.worker.post import Crew, Post
from dragoman.client.worker.settings import WorkerSettings
from dragoman.client.worker.side_post import SidePost


def post_of(
    address: Address, settings: WorkerSettings, queues: tuple[tuple[int, str], ...], crew: Crew
) -> Post | SidePost:
    """Raises NotInDialect when the dialect has no such queues."""
    kind = Post if address.tongue is EMQP else SidePost
    return kind(address, settings, queues, crew)
