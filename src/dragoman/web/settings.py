"""The settings that the broker sends to its web process at start."""

from __future__ import annotations

import msgspec


class WebSettings(msgspec.Struct, frozen=True):
    """`key` signs cookies and forms for one boot of the broker; a token is empty if its role is not configured."""

    key: str
    token: str = ""
    read_token: str = ""
    hosts: tuple[str, ...] = ()
    metrics_queues_max: int = 200
    past_s: float = 3600.0
    request_s: float = 10.0

    @property
    def is_guarded(self) -> bool:
        return bool(self.token or self.read_token)
