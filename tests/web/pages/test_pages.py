"""What the pages show of a real broker: complete without any script, whatever peers call themselves."""

from __future__ import annotations

import asyncio
import json
import re
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest

from dragoman.client.app import App
from dragoman.web import pages
from dragoman.web.dashboard import Context, Dashboard
from dragoman.web.link import Link
from dragoman.web.samples.sampling import QUEUES_FOLLOWED, Sampler
from tests.cli.broker import FakeWorker
from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client
from tests.waiting import wait_for
from tests.web.conftest import NewBroker
from tests.web.load import set_aside
from tests.web.visitor import Visitor

PAGES = ["/", "/queues", "/workers", "/quarantine", "/schedules", "/crossings", "/search"]
HOSTILE = '"><script>alert(1)</script>&amp;\u202e\x01'


def words(html: str) -> str:
    """A page's text, without its tags; what is shown as code stands between backticks, as the broker says it."""
    ticked = re.sub(r"</?code>", "`", html)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", ticked)))


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_there_while_nothing_has_happened_yet(visitor: Visitor, path: str) -> None:
    html = visitor.page(path)
    assert html.count("<h1") == 1
    assert 'lang="en"' in html
    assert "<script>" not in html
    assert " style=" not in html


def test_a_queue_without_a_worker_is_a_finding_on_the_overview(visitor: Visitor, app: App) -> None:
    for _ in range(3):
        app.send_sync("lonely", b"x")
    line = "queue `lonely` has 3 waiting and no worker"
    wait_for("the finding", lambda: line in words(visitor.page("/")))
    wait_for(
        "the finding on the queue's page",
        lambda: "no worker serves `lonely`" in words(visitor.page("/queue?name=lonely")),
    )


def test_the_queues_page_tells_depth_and_age_and_offers_what_can_be_done(visitor: Visitor, app: App) -> None:
    app.send_sync("shown", b"x")
    html = visitor.page("/queues?prefix=shown")
    assert "Pause shown" in html
    assert "Purge shown" in html
    assert re.search(r">shown</a>", html)
    assert "lonely" not in html


def test_a_queues_page_says_why_it_stands_still(visitor: Visitor, app: App) -> None:
    app.send_sync("why", b"x")
    text = words(visitor.page("/queue?name=why"))
    assert "no worker serves `why`" in text
    assert "No worker serves this queue." in text


def test_a_missing_queue_is_reported(visitor: Visitor) -> None:
    answer = visitor.get("/queue?name=nowhere")
    assert answer.status == 404
    assert "There is no queue 'nowhere'." in unescape(answer.text)


def test_a_hostile_name_is_text_and_nothing_else(visitor: Visitor, app: App) -> None:
    handle = app.send_sync(HOSTILE, b"<img src=x onerror=alert(1)>", ["traceparent:<b>bold</b>"])
    escaped = r"&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;\u202e\x01"
    wait_for("the name on the overview", lambda: escaped in visitor.page("/"))
    for path in ("/", "/queues", f"/queue?name={quote(HOSTILE)}", f"/message/{handle.id}?body=1"):
        html = visitor.page(path)
        assert "<script>alert" not in html, path
        assert "<img src=x" not in html, path
        assert "\u202e" not in html, path
        assert escaped in html, path


def test_a_hostile_queue_can_be_paused_by_its_own_button(broker: Daemon, visitor: Visitor, app: App) -> None:
    name = HOSTILE + "\r\nmore"
    app.send_sync(name, b"x")
    html = visitor.page(f"/queue?name={quote(name)}")
    action = re.search(r'<form action="(/do/pause[^"]*)"', html)
    assert action is not None
    assert visitor.do(unescape(action[1])).status == 303
    paused = [queue["queue"] for queue in broker.ask("queues", limit=1000)["queues"] if queue["is_paused"]]
    assert name in paused


def test_an_id_with_slashes_and_percent_signs_has_a_page(visitor: Visitor, broker: Daemon) -> None:
    answer = visitor.get("/message/" + quote("a/b%2F..?c", safe=""))
    assert answer.status == 404
    assert "has the id 'a/b%2F..?c'" in unescape(answer.text)


def test_an_open_message_tells_its_life_and_why_it_waits_and_keeps_its_body_to_itself(
    visitor: Visitor, app: App, broker: Daemon
) -> None:
    handle = app.send_sync("open", b'{"secret": 42}')
    html = visitor.page(f"/message/{handle.id}")
    text = words(html)
    assert "waits: no worker serves `open`" in text
    assert "from a client that speaks emqp" in text
    assert "eMQP/1.0" in text
    assert "secret" not in text
    assert f"dragoman export-test --data {broker.data} --id" in text
    shown = words(visitor.page(f"/message/{handle.id}?body=1"))
    assert '"secret": 42' in shown


def test_a_settled_message_tells_who_answered_and_its_frames(broker: Daemon, visitor: Visitor, app: App) -> None:
    fake_worker = FakeWorker(broker.data, b"served", lambda body: body.upper())
    assert app.call_sync("served", b"abc") == b"ABC"
    fake_worker.vanish()
    done = next(q for q in broker.ask("queues", prefix="served")["queues"])
    assert done["done"] == 1
    life = re.search(r'href="(/message/[^"]+)"', visitor.page(f"/search?q={numbers(broker)[-1]}"))
    assert life is not None
    text = words(visitor.page(life[1]))
    assert "settled: done (answered)" in text
    assert "what the worker receives" in text
    assert "what the worker sent" in text
    assert "3 bytes, not stored" in text


def numbers(broker: Daemon) -> list[str]:
    """The numbers of all messages the journal tells of."""
    from dragoman.journal.reader import JournalReader
    from dragoman.model.facts.decode import decode_block
    from dragoman.model.phrases import number_text

    blocks = JournalReader(str(broker.data / "journal")).read(0)
    facts = [fact for block in blocks for fact in decode_block(block.records)]
    return [number_text(int(str(fact["message_no"]))) for fact in facts if fact["fact"] == "closed"]


def test_a_worker_has_a_page_with_what_it_holds(broker: Daemon, visitor: Visitor, app: App) -> None:
    fake_worker = FakeWorker(broker.data, b"held", None)
    handle = app.send_sync("held", b"x")
    wait_for("the lease", lambda: broker.ask("message", id=handle.id)["state"] == "leased")
    worker = broker.ask("workers", queue="held")["workers"][0]["id"]
    text = words(visitor.page(f"/worker?id={worker}"))
    assert handle.id in text
    assert "has held message" in text
    assert worker in words(visitor.page("/workers?queue=held"))
    fake_worker.vanish()


def test_what_was_set_aside_shows_why_and_its_body_only_when_asked(broker: Daemon, visitor: Visitor, app: App) -> None:
    set_aside(broker, app, b"aside", b"a body to see")
    html = visitor.page("/quarantine?queue=aside")
    assert "workers died" in words(html)
    assert "died with w" in words(html)
    assert "a body to see" not in html
    assert "a body to see" in visitor.page("/quarantine?queue=aside&bodies=1")
    assert "No quarantined message matches." in words(visitor.page("/quarantine?queue=aside&dialect=rq"))


def test_schedules_are_described_in_plain_words(visitor: Visitor, app: App) -> None:
    @app.job(queue="nightly")
    def tidy(what: str) -> None: ...

    app.every_sync("30 3 * * 1-5", tidy, "logs")
    app.every_sync(120.0, tidy, "cache")
    text = words(visitor.page("/schedules"))
    assert "At 03:30 on Monday through Friday" in text
    assert "Every 2 minutes" in text
    assert "tidy" in text


def test_crossings_count_who_settled_whose_message(broker: Daemon, visitor: Visitor, app: App) -> None:
    fake_worker = FakeWorker(broker.data, b"crossed", lambda body: body)
    app.call_sync("crossed", b"abc")
    fake_worker.vanish()

    def cells() -> list[str]:
        row = re.search(r'<th scope="row">emqp</th>(.*?)</tr>', visitor.page("/crossings"))
        assert row is not None
        return re.findall(r"<td[^>]*>([^<]*)</td>", row[1])

    wait_for("the count", lambda: cells()[2] != "·")
    assert cells()[0] == "·"


def test_search_finds_open_messages_by_queue_state_dialect_and_age(visitor: Visitor, app: App) -> None:
    handle = app.send_sync("sought", b"x")
    assert handle.id in visitor.page("/search?queue=sought&state=waiting&dialect=emqp")
    assert "No open message matches." in visitor.page("/search?queue=sought&state=leased")
    assert "No open message matches." in visitor.page("/search?queue=sought&older_than_s=86400")
    assert "/queue?name=sought" in visitor.page("/search?q=sou")


def test_a_filter_that_makes_no_sense_is_refused_in_words(visitor: Visitor) -> None:
    answer = visitor.get("/search?state=floating")
    assert answer.status == 400
    assert "There is no state 'floating'" in unescape(answer.text)


def test_the_stream_sends_the_live_part_and_then_what_changed(visitor: Visitor, app: App) -> None:
    visitor.page("/queues")
    first, second = visitor.events("/queues?prefix=", 2)[:2]
    assert first[0] == second[0] == "live"
    assert "<table" in first[1]
    assert "<html" not in first[1]


def test_the_stream_of_a_settled_message_ends(broker: Daemon, visitor: Visitor, app: App) -> None:
    handle = app.send_sync("ended", b"x")
    broker.ask("cancel", id=handle.id)
    visitor.page("/")
    names = [name for name, _ in visitor.events(f"/message/{handle.id}", 2)]
    assert names == ["live", "end"]


class SettlingLink(Link):
    """A message ends in the very moment it is asked about."""

    async def ask(self, op: str, /, **args: object) -> Any:
        if op == "message":
            await self.change("cancel", id=args["id"])
        return await super().ask(op, **args)


def test_a_page_that_will_not_change_again_tells_the_messages_end(broker: Daemon, app: App) -> None:
    handle = app.send_sync("between", b"x")

    async def look(link: Link) -> Context:
        dashboard = Dashboard(broker.data, link, Sampler(link, None))
        try:
            return await pages.PAGES["message"].context(dashboard, {}, handle.id)
        finally:
            link.close()

    seen = [asyncio.run(look(SettlingLink(broker.data)))]

    def is_still() -> bool:
        seen.append(asyncio.run(look(Link(broker.data))))
        return bool(seen[-1]["is_still"])

    wait_for("the end", is_still)
    assert {context["state"] for context in seen if context["is_still"]} == {"cancelled"}


def test_the_stream_of_a_worker_that_has_gone_says_so_and_ends(broker: Daemon, visitor: Visitor) -> None:
    fake_worker = FakeWorker(broker.data, b"parting", None)
    try:
        worker = wait_for("the worker", lambda: broker.ask("workers", queue="parting")["workers"])[0]["id"]
        visitor.page("/")
        assert visitor.events(f"/worker?id={worker}", 1)[0][0] == "live"
    finally:
        fake_worker.vanish()
    wait_for("it to be gone", lambda: broker.ask("workers", queue="parting")["total"] == 0)

    def has_left() -> bool:
        return "left " in words(visitor.page(f"/worker?id={worker}"))

    wait_for("how it left", has_left)
    events = visitor.events(f"/worker?id={worker}", 3)
    assert [name for name, _ in events] == ["live", "end"]
    assert "and served" in events[0][1]
    assert [name for name, _ in visitor.events("/worker?id=w9.9", 2)] == ["gone"]


def test_the_journal_is_searched_for_the_page_and_not_at_each_beat(visitor: Visitor, app: App) -> None:
    handle = app.send_sync("once", b"x")
    wait_for("the life", lambda: "Messages with this id" in visitor.page(f"/search?q={handle.id}"))
    name, html = visitor.events(f"/search?q={handle.id}", 1)[0]
    assert name == "live"
    assert "Messages with this id" not in html
    assert "No message has this id." in visitor.page("/search?q=once")


def test_the_busiest_queue_is_found_among_more_than_are_followed(new_broker: NewBroker) -> None:
    crowded = new_broker().start()
    with Client(crowded) as client:
        for number in range(QUEUES_FOLLOWED + 1):
            client.keep(b"idle-%d" % number)
        client.keep(b"last-and-deep")
        client.keep(b"last-and-deep")
    visitor = Visitor(crowded)

    def busiest() -> str:
        html = visitor.page("/")
        return re.findall(r"/queue\?name=([^\"&]+)", html[html.index("h-busy") :])[0]

    wait_for("the deepest queue to be first", lambda: busiest() == "last-and-deep")
    unfollowed = f"idle-{QUEUES_FOLLOWED}"  # from its first moment on there are enough before it
    row = visitor.page(f"/queues?prefix={unfollowed}")
    assert '<td data-th="Depth" class="wide">–</td>' in row
    assert '<td data-th="In/s" class="n">–</td>' in row


def test_forms_in_a_stream_carry_the_viewers_own_token(broker: Daemon, app: App) -> None:
    app.send_sync("sealed", b"x")
    tokens = []
    for visitor in (Visitor(broker), Visitor(broker)):
        tokens.append(visitor.csrf_token())
        html = str(visitor.events("/queue?name=sealed", 1)[0][1])
        assert f'name="csrf_token" value="{tokens[-1]}"' in html
    assert tokens[0] != tokens[1]


def test_there_is_no_stream_of_something_that_is_no_page(visitor: Visitor) -> None:
    for at in ("/nowhere", "/static/page.js", "//evil.example/", "/stream", "/message/", "//[", "http://[::1"):
        assert visitor.get(f"/stream?at={quote(at, safe='')}").status == 404, at


def test_the_page_and_all_its_files_weigh_less_than_200_kb(visitor: Visitor) -> None:
    html = visitor.page("/")
    files = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', html))
    modules = {"/static/follow.js", "/static/become.js", "/static/keys.js"}
    sizes = {path: len(visitor.get(path).body) for path in files | modules}
    assert all(sizes.values()), sizes
    assert len(html.encode()) + sum(sizes.values()) < 200_000, sizes


def test_a_program_gets_json_from_an_action(visitor: Visitor, app: App, broker: Daemon) -> None:
    app.send_sync("robotic", b"x")
    answer = visitor.post("/do/pause?queue=robotic", {"csrf_token": visitor.csrf_token()}, Accept="application/json")
    assert answer.status == 200
    assert answer.json["result"] == {"queue": "robotic", "is_paused": True}
    assert json.dumps(answer.json)
