"""Fixtures of the journal's tests."""

from __future__ import annotations

import pytest

from dragoman.testing.disk import FakeDisk


@pytest.fixture
def disk() -> FakeDisk:
    return FakeDisk()
