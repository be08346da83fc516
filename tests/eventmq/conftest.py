"""Fixtures of the real EventMQ suite.

`DRAGOMAN_TEST_ORIGINAL_ROUTER=1` runs the same tests against EventMQ's own router, to prove the harness rather than the
broker; what that router cannot do is left out then.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.eventmq.brokers import ORIGINAL, Dragoman, Original
from tests.eventmq.home import make_home
from tests.eventmq.programs import Client
from tests.eventmq.shops import Shop

OpenShop = Callable[..., Shop]


def open_shop_in(home: Path, room: Path, settings: tuple[str, ...]) -> Shop:
    return Shop(home, room, Original(home, room / "data") if ORIGINAL else Dragoman(room / "data", *settings))


@pytest.fixture(scope="session")
def home() -> Path:
    return make_home()


@pytest.fixture(scope="session")
def shop(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The shop that most tests share: one broker and one job manager of four slots on `low` and `default`."""
    shop = open_shop_in(home, tmp_path_factory.mktemp("shop"), ())
    shop.job_manager([(30, "low"), (10, "default")], slots=4)
    yield shop
    shop.close()


@pytest.fixture(scope="session")
def client(shop: Shop) -> Client:
    return shop.client()


@pytest.fixture
def open_shop(home: Path, tmp_path: Path) -> Iterator[OpenShop]:
    """Open a shop of the test's own, for tests that stop or restart the broker or set it up differently."""
    shops: list[Shop] = []

    def open_one(*settings: str) -> Shop:
        shops.append(open_shop_in(home, tmp_path, settings))
        return shops[-1]

    yield open_one
    for shop in shops:
        shop.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failing test shows what its programs printed."""
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, Shop):
                report.sections.append((f"programs of {name}", value.logs()))
    return report
