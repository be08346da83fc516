"""A broker without a process for each test that wants one."""

from __future__ import annotations

import pytest

from tests.core.harness import House


@pytest.fixture
def house() -> House:
    return House()
