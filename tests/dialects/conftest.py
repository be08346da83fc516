"""The broker processes of the runtime's tests, for what only a real process can show of a dialect."""

from __future__ import annotations

from tests.runtime.conftest import broker, common, new_broker

__all__ = ["broker", "common", "new_broker"]
