"""A broker without a process for each test that wants one."""

from __future__ import annotations

import pytest

from tests.core.harness import InMemoryBroker


@pytest.fixture
def broker() -> InMemoryBroker:
    return InMemoryBroker()
