"""The broker process of the command line's tests: admin requests are what its commands send."""

from __future__ import annotations

from tests.cli.conftest import broker, common, common_broker, dragoman

__all__ = ["broker", "common", "common_broker", "dragoman"]
