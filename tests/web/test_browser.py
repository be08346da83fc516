"""The page in a real browser, on a broker with all five dialects at work: every page, every action, keys, colours, a phone, and what it
costs. Screenshots stay in the directory that DRAGOMAN_SCREENSHOTS names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import pytest
from selenium.webdriver.common.keys import Keys

from dragoman.client.app import App
from tests.runtime.daemon import Daemon
from tests.waiting import wait_for
from tests.web.browser import LOAD_S, Browser, chromium
from tests.web.conftest import daemon_with_page
from tests.web.load import HOSTILE_QUEUE, all_dialects, furnish, set_aside

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

WEIGHT_MAX = 200_000
FIRST_PAINT_S = 10.0  # a tenth of it on a machine at rest; the suite keeps all cores busy


@dataclass
class Scene:
    """Everything a test of this file works with; one for all, for it takes a while to furnish."""

    broker: Daemon
    app: App
    browser: Browser
    ids: dict[str, str]

    @property
    def worker(self) -> str:
        return str(self.broker.ask("workers")["workers"][0]["id"])

    @property
    def pages(self) -> dict[str, str]:
        return {
            "overview": "/",
            "queues": "/queues",
            "queue": "/queue?name=mail",
            "hostile queue": f"/queue?name={quote(HOSTILE_QUEUE)}",
            "workers": "/workers",
            "worker": f"/worker?id={self.worker}",
            "message": f"/message/{self.ids['waiting']}?body=1",
            "message set aside": f"/message/{self.ids['aside']}",
            "quarantine": "/quarantine?bodies=1",
            "schedules": "/schedules",
            "crossings": "/crossings",
            "search": "/search?q=mail&queue=mail",
            "question": "/confirm/purge?queue=mail",
            "not found": "/message/nobody",
        }


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    base = tmp_path_factory.mktemp("scene")
    broker = daemon_with_page(base / "data", "queues.quarantine_after=1").start()
    host, port = broker.place("http")
    try:
        with App(f"file:{broker.data}") as app, all_dialects(broker.data):
            ids = furnish(broker, app)
            with chromium(f"http://{host}:{port}", base) as browser:
                yield Scene(broker, app, browser, ids)
    finally:
        broker.kill()


@pytest.fixture
def browser(scene: Scene) -> Browser:
    """As on a desk, by day."""
    scene.browser.resize(1280, 900)
    scene.browser.colours("light")
    return scene.browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_breaks_no_rule_of_its_own(scene: Scene, browser: Browser, scheme: str) -> None:
    browser.colours(scheme)
    faults: dict[str, list[str]] = {}
    for name, path in scene.pages.items():
        browser.resize(1280, 900)
        browser.open(path)
        if name not in ("question", "not found"):
            browser.wait_text("live" if "message" not in name else "", "#pulse")
        faults[name] = browser.axe()
        browser.shoot(f"{name.replace(' ', '-')}-{scheme}")
        complaints = [line for line in browser.complaints() if name != "not found"]
        faults[name] += complaints
    assert {name: found for name, found in faults.items() if found} == {}


def test_nothing_needs_to_be_scrolled_sideways_on_a_phone(scene: Scene, browser: Browser) -> None:
    for name, path in scene.pages.items():
        browser.resize(360, 740)
        browser.open(path)
        # Chromium lays a page out anew a moment after it took the phone's size.
        wait_for(f"{name} to fit", lambda: browser.js("return document.documentElement.scrollWidth") <= 360, LOAD_S)
        browser.shoot(f"{name.replace(' ', '-')}-phone")


def test_a_phone_shows_what_a_schedule_makes_and_a_desk_its_expression_in_one_piece(
    scene: Scene, browser: Browser
) -> None:
    browser.open("/schedules")
    pieces = "return [...document.querySelectorAll('td code')].map(e => e.getClientRects().length)"
    assert browser.js(pieces) == [1]
    browser.resize(360, 740)
    browser.open("/schedules")
    assert "tidy" in browser.text()


def test_pages_are_light_quick_and_ask_nobody_but_this_host(scene: Scene, browser: Browser) -> None:
    browser.open("/queues")  # chromium's own first steps are not the page's
    browser.requests()
    script = (
        "const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];"
        "const paint = performance.getEntriesByName('first-contentful-paint')[0];"
        "return [entries.reduce((sum, e) => sum + (e.decodedBodySize || 0), 0), paint ? paint.startTime : -1]"
    )
    paints = []
    for path in scene.pages.values():
        browser.open(path)
        wait_for("the first paint", lambda: browser.js(script)[1] >= 0, LOAD_S)
        weight, paint_ms = browser.js(script)
        assert weight < WEIGHT_MAX, path
        paints.append(paint_ms / 1000)
    # One slow page may be the machine's doing; the middle one is ours.
    middle_s = sorted(paints)[len(paints) // 2]
    print(f"first paint: {middle_s:.3f} s in the middle, {max(paints):.3f} s at most")
    assert middle_s < FIRST_PAINT_S, paints
    elsewhere = [url for url in browser.requests() if urlsplit(url).netloc != urlsplit(browser.origin).netloc]
    assert [url for url in elsewhere if not url.startswith(("data:", "chrome:", "about:"))] == []


def test_the_overview_is_alive(scene: Scene, browser: Browser) -> None:
    browser.open("/")
    settled = "return document.querySelector('.pairs').innerText"
    before = browser.js(settled)
    browser.wait_beats(3)
    wait_for("another count", lambda: browser.js(settled) != before, LOAD_S)
    assert browser.text("#pulse") == "live"
    assert "mail has 12 waiting and no worker" in " ".join(browser.text(".findings").split())


def test_a_hostile_name_runs_nothing_and_looks_like_itself(scene: Scene, browser: Browser) -> None:
    browser.open(f"/queue?name={quote(HOSTILE_QUEUE)}")
    assert browser.text("h1") == HOSTILE_QUEUE
    assert browser.js("return document.querySelectorAll('main script, main img').length") == 0


def test_an_update_keeps_the_focus_and_what_was_opened(scene: Scene, browser: Browser) -> None:
    browser.open(f"/message/{scene.ids['waiting']}")
    browser.js("document.querySelector('details').open = true; document.querySelector('summary').focus()")
    browser.wait_beats(2)
    assert browser.js("return document.querySelector('details').open") is True
    assert browser.js("return document.activeElement.nodeName") == "SUMMARY"
    assert "REQUEST" in browser.text("details")


def test_nothing_is_asked_while_nobody_can_see_it(scene: Scene, browser: Browser) -> None:
    browser.open("/queues")
    browser.wait_beats(1)
    first = browser.driver.current_window_handle
    browser.js(
        "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    assert browser.text("#pulse") == "paused"
    beats = browser.js("return document.body.dataset.beats")
    status = scene.broker.ask("status")["counters"]["accepted"]
    wait_for("the broker to go on", lambda: scene.broker.ask("status")["counters"]["accepted"] > status + 200, LOAD_S)
    assert browser.js("return document.body.dataset.beats") == beats
    browser.js(
        "Object.defineProperty(document, 'hidden', {value: false, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    browser.wait_beats(int(beats) + 2)
    assert browser.driver.current_window_handle == first


def test_keys_lead_through_the_pages(scene: Scene, browser: Browser) -> None:
    def type_keys(keys: str) -> None:
        browser.find("body")[0].send_keys(keys)

    browser.open("/")
    for letter, path in {
        "q": "/queues",
        "w": "/workers",
        "x": "/quarantine",
        "s": "/schedules",
        "c": "/crossings",
        "o": "/",
    }.items():
        type_keys("g" + letter)
        wait_for(f"g {letter}", lambda path=path: urlsplit(browser.driver.current_url).path == path, LOAD_S)
    type_keys("?")
    wait_for("the keys", lambda: browser.js("return document.getElementById('keys').open"))
    browser.find("#keys")[0].send_keys(Keys.ESCAPE)
    wait_for("the keys to go", lambda: not browser.js("return document.getElementById('keys').open"))
    type_keys("/")
    wait_for("the search", lambda: browser.js("return document.activeElement.id") == "find")
    browser.find("#find")[0].send_keys(scene.ids["waiting"], Keys.ENTER)
    browser.wait_text("Messages with this id")
    browser.find("main")[0].send_keys("j")
    wait_for("the first row", lambda: "/message/" in str(browser.js("return document.activeElement.href ?? ''")))
    browser.js("document.activeElement.click()")
    browser.wait_text("What happened")


def test_a_queue_is_paused_resumed_drained_and_purged(scene: Scene, browser: Browser) -> None:
    for _ in range(5):
        scene.app.send_sync("worklist", b"x")
    browser.open("/queues?prefix=worklist")
    browser.press("Pause worklist")
    browser.wait_text("worklist is paused: it takes messages and gives none out.")
    assert scene.broker.ask("queues", prefix="worklist")["queues"][0]["is_paused"]
    browser.press("Resume worklist")
    browser.wait_text("worklist goes on.")
    browser.press("Drain worklist")
    browser.press("Drain the queue")
    browser.wait_text("worklist is draining: it accepts nothing new.")
    browser.press("Purge worklist")
    browser.wait_text("Cancel 5 messages that wait in worklist?")
    browser.press("Purge 5 messages")
    browser.wait_text("5 messages of worklist cancelled.")
    assert scene.broker.ask("queues", prefix="worklist")["queues"][0]["waiting"] == 0


def test_a_message_is_cancelled_and_its_page_tells_the_end(scene: Scene, browser: Browser) -> None:
    handle = scene.app.send_sync("doomed", b"x")
    browser.open(f"/message/{handle.id}")
    browser.press("Cancel")
    browser.press("Cancel the message")
    browser.wait_text("settled: cancelled (by_operator)")
    browser.wait_text("complete", "#pulse")
    browser.shoot("message-cancelled")


def test_what_was_set_aside_is_retried_and_dropped(scene: Scene, browser: Browser) -> None:
    first = set_aside(scene.broker, scene.app, b"bulky", b"1")
    browser.open(f"/message/{first}")
    browser.press("Retry now")
    browser.wait_text("is tried again.")
    scene.broker.ask("purge", queue="bulky")
    for number in range(2):
        set_aside(scene.broker, scene.app, b"bulky", b"%d" % number)
    browser.open("/quarantine?queue=bulky")
    browser.press("Retry all that match")
    browser.press("Retry 2 messages")
    browser.wait_text("2 messages tried again.")
    scene.broker.ask("purge", queue="bulky")
    set_aside(scene.broker, scene.app, b"bulky", b"3")
    browser.open("/quarantine?queue=bulky")
    browser.press("Drop all that match")
    browser.press("Drop 1 message")
    browser.wait_text("1 message dropped.")
    assert scene.broker.ask("quarantine_list", queue="bulky")["total"] == 0


def test_a_schedule_is_removed(scene: Scene, browser: Browser) -> None:
    browser.open("/schedules")
    schedule = str(scene.broker.ask("schedules")["schedules"][0]["id"])
    browser.press(f"Remove {schedule}")
    browser.press("Remove the schedule")
    browser.wait_text(f"Schedule {schedule} is removed.")


def test_the_matrix_fills_with_all_twenty_five_crossings(scene: Scene, browser: Browser) -> None:
    browser.open("/crossings")
    cells = (
        "return [...document.querySelectorAll('.matrix tbody td:not(.sum)')].filter(c => c.innerText !== '·').length"
    )
    wait_for("every crossing", lambda: browser.js(cells) >= 25, LOAD_S)


def test_a_page_says_when_the_broker_is_away_and_comes_back_with_it(scene: Scene, browser: Browser) -> None:
    """The last of the file: the load does not survive it unharmed."""
    browser.open("/queues")
    browser.wait_beats(1)
    scene.broker.process.kill_alone()
    browser.wait_text("no answer", "#pulse")
    scene.broker.start()
    browser.wait_text("live", "#pulse")


def test_a_worker_is_dismissed_and_admitted_and_another_disconnected(scene: Scene, browser: Browser) -> None:
    workers = wait_for("workers again", lambda: scene.broker.ask("workers")["workers"][1:], LOAD_S)
    drained, cut = str(workers[-1]["id"]), str(workers[0]["id"])
    browser.open("/workers")
    browser.press(f"Dismiss {drained}")
    browser.press("Dismiss the worker")
    browser.wait_text(f"{drained} is dismissed: it gets nothing new.")
    browser.press(f"Admit {drained}")
    browser.wait_text(f"{drained} is admitted.")
    browser.press(f"Disconnect {cut}")
    browser.press("Disconnect the worker")
    browser.wait_text(f"{cut} is disconnected.")
    wait_for("it to be gone", lambda: cut not in [w["id"] for w in scene.broker.ask("workers")["workers"]], LOAD_S)
