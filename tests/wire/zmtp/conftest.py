from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.wire.zmtp.skin import Stage, a_stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    with a_stage() as stage:
        yield stage
