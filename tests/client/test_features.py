"""What a dialect has no word for is refused before anything is sent, and the nearest dialect that has it is named."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import App
from dragoman.client import features
from dragoman.client.job import Handle
from dragoman.client.options import NEEDED_FEATURES, Options, check_options
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.worker import Worker
from dragoman.dialects.description import CLIENT, PUBLISH, SUBSCRIBE, WORKER, DialectDescription
from dragoman.dialects.endpoint import (
    ClientEndpoint,
    EndpointSetup,
    MessageIds,
    PublisherEndpoint,
    SubscriberEndpoint,
    WorkerEndpoint,
)
from dragoman.dialects.registry import DIALECTS_BY_NAME
from dragoman.errors import NotInDialect

OTHERS = ("rq", "ebus", "scale0", "pingpong")


def app_of(dialect: str) -> App:
    return App(f"{dialect}://127.0.0.1:9" if dialect in ("rq", "emqp") else f"{dialect}://127.0.0.1")


async def echo(number: int) -> int:
    return number


def refused(work: Callable[[], Any]) -> NotInDialect:
    with pytest.raises(NotInDialect) as error:
        work()
    assert error.value.code == "NOT_IN_DIALECT"
    return error.value


@pytest.mark.parametrize("dialect", OTHERS)
def test_only_emqp_has_schedules(dialect: str) -> None:
    app = app_of(dialect)
    job = app.job()(echo)
    for ask in (lambda: app.every(5, job, 1), lambda: app.every_sync("* * * * *", job, 1)):
        error = refused(ask)
        assert str(error) == f"{dialect} has no schedules; emqp has: use emqp://…"
    refused(lambda: app.unschedule_sync(job, 1))
    assert app.schedules == []
    app.close_sync()


@pytest.mark.parametrize("dialect", ["ebus", "scale0", "pingpong"])
def test_delay_wants_a_dialect_that_says_kept(dialect: str) -> None:
    app = app_of(dialect)
    for ask in (lambda: app.job()(echo).delay_sync(1), lambda: asyncio.run(app.send("default", b"x"))):
        error = refused(ask)
        assert error.dialect == dialect
        assert error.having == ("rq", "emqp")
        assert "use rq://… or emqp://…" in str(error)
    app.close_sync()


@pytest.mark.parametrize("dialect", ["scale0", "pingpong"])
def test_news_want_a_dialect_that_publishes(dialect: str) -> None:
    app = app_of(dialect)
    assert refused(lambda: app.publish("a", 1)).having == ("rq", "ebus", "emqp")
    refused(lambda: app.publish_sync("a", 1))
    refused(lambda: app.news("a"))
    app.on("a")(echo)

    async def work() -> None:
        Worker(app, WorkerSettings())

    refused(lambda: asyncio.run(work()))


def test_rq_hears_a_topic_by_its_name_and_not_everything() -> None:
    error = refused(lambda: app_of("rq").news())
    assert str(error) == "rq has no subscribing to everything; ebus, emqp have: use ebus://… or emqp://…"


OPTIONS: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"retries": 0}, ("rq", "emqp")),
    ({"timeout_s": 1.0}, ("emqp",)),
    ({"priority": 1}, ("emqp",)),
    ({"delay_s": 1.0}, ("emqp",)),
    ({"expires_s": 1.0}, ("rq", "ebus", "emqp")),
    ({"dedupe": "k"}, ("emqp",)),
    ({"guarantee": True}, ("emqp",)),
    ({"once": True}, ("ebus", "emqp")),
]


@pytest.mark.parametrize("dialect", OTHERS)
@pytest.mark.parametrize(("options", "having"), OPTIONS, ids=lambda value: next(iter(value)))
def test_an_option_is_refused_where_the_dialect_has_no_field_for_it(
    dialect: str, options: dict[str, Any], having: tuple[str, ...]
) -> None:
    app = app_of(dialect)
    if dialect in having:
        check_options(app.address, Options(**options))
        return
    error = refused(lambda: app.job(**options)(echo).ask_sync(1))
    assert (error.dialect, error.having) == (dialect, having)
    assert f"`{next(iter(options))}`" in str(error)
    app.close_sync()


@pytest.mark.parametrize("dialect", OTHERS)
def test_a_repeatable_job_is_welcome_everywhere(dialect: str) -> None:
    check_options(app_of(dialect).address, Options(repeatable=True, wait_s=1.0))


@pytest.mark.parametrize("dialect", OTHERS)
def test_questions_after_a_job_and_headers_are_emqp_s(dialect: str) -> None:
    app = app_of(dialect)
    handle = Handle(app, "x")
    for ask in (handle.state_sync, handle.cancel_sync, lambda: asyncio.run(app.call("default", b"", ["a"]))):
        assert refused(ask).having == ("emqp",)
    app.close_sync()


PAGE = Path(__file__).parents[2] / "docs/reference/client.md"
ON_THE_PAGE = {
    "delay": features.KEPT[1],
    "publish": features.PUBLISH[1],
    "on": features.SUBSCRIBE[1],
    "state": features.STATE[1],
    "every": features.SCHEDULES[1],
    **{option: number for option, (number, _) in NEEDED_FEATURES.items()},
}


def test_the_page_says_of_each_dialect_what_it_has() -> None:
    table = PAGE.read_text().partition("## Dialects")[2].partition("- **rq**")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    dialects = rows[0][1:]
    assert sorted(dialects) == sorted(DIALECTS_BY_NAME)
    told = {name: row[1:] for row in rows[2:] for name in re.findall(r"`(\w+)`", row[0])}
    for name, number in ON_THE_PAGE.items():
        has = ["yes" if dialect in features.names_having(number) else "–" for dialect in dialects]
        assert told[name] == has, name


def test_pingpong_has_one_queue() -> None:
    app = App("pingpong://127.0.0.1?queue=orders")
    check_options(app.address, Options())
    check_options(app.address, Options("orders"))
    error = refused(lambda: app.job(queue="mail")(echo).ask_sync(1))
    assert "pingpong has no queue but 'orders', so none named 'mail'" in str(error)
    assert error.having[0] == "rq"

    async def work() -> None:
        Worker(app, WorkerSettings())

    refused(lambda: asyncio.run(work()))
    app.close_sync()


@pytest.mark.parametrize("profile", DIALECTS_BY_NAME.values(), ids=lambda profile: profile.name)
def test_a_dialect_has_an_endpoint_for_each_role_of_its_profile(profile: DialectDescription) -> None:
    kinds = {
        CLIENT: ("client", ClientEndpoint),
        WORKER: ("worker", WorkerEndpoint),
        PUBLISH: ("publisher", PublisherEndpoint),
        SUBSCRIBE: ("subscriber", SubscriberEndpoint),
    }
    setup = EndpointSetup(b"me", MessageIds(b"-" * 24))
    for role, (name, kind) in kinds.items():
        make = getattr(profile.endpoints(), name, None)
        assert (make is not None) == (role in profile.by_role)
        assert make is None or isinstance(make(setup), kind)
