"""Messages found on the page by what is known of them: open ones as they are now, ended ones out of the journal."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import quote

import pytest

from dragoman.client.app import App
from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client, Worker
from tests.waiting import wait_for
from tests.web.visitor import Visitor

ENDED = 'id="h-ended"'


def parts(html: str) -> tuple[str, str]:
    """What is said of open messages, and of ended ones."""
    live, _, ended = html.partition(ENDED)
    return live, ended


def done(broker: Daemon, queue: str, count: int, client: bytes = b"", worker: bytes = b"") -> list[str]:
    """Messages that were asked for and answered."""
    with Client(broker, identity=client) as asking, Worker(broker, queue.encode(), identity=worker) as working:
        ids = [asking.request(queue.encode(), b"reply-requested") for _ in range(count)]
        working.serve(count)
        for request_id in ids:
            asking.result(request_id)
    return [request_id.decode() for request_id in ids]


def test_an_ended_message_is_found_by_queue_state_client_worker_and_time(broker: Daemon, visitor: Visitor) -> None:
    [request_id] = done(broker, "letters", 1, b"anna", b"postman")
    for query in (
        "queue=letters",
        "queue=letters&state=done",
        "queue=letters&state=ended&dialect=emqp",
        "peer=anna",
        "peer=postman&since=-5m",
        "peer=postman&from=2026-01-01T00:00&to=2099-01-01T00:00:30",
    ):
        live, ended = parts(visitor.page(f"/search?{query}"))
        assert f">{request_id}<" in ended, query
        assert request_id not in live, query
        assert ">anna<" in ended
        assert "postman" in ended
    for query in ("queue=letters&state=rejected", "peer=anna&dialect=rq", "peer=anna&to=2020-01-01T00:00"):
        assert "No ended message matches." in parts(visitor.page(f"/search?{query}"))[1], query


def test_an_open_message_is_found_by_its_clients_identity_and_by_the_worker_that_holds_it(
    broker: Daemon, visitor: Visitor
) -> None:
    with Client(broker, identity=b"berta") as berta, Worker(broker, b"parcels", identity=b"carrier") as carrier:
        held = berta.request(b"parcels", b"ack-requested")
        carrier.take()
        waiting = berta.keep(b"parcels")
        live, ended = parts(visitor.page("/search?peer=berta"))
        assert all(request_id.decode() in live for request_id in (held, waiting))
        assert "No ended message matches." in ended
        live = parts(visitor.page("/search?peer=carrier"))[0]
        assert held.decode() in live
        assert waiting.decode() not in live
        assert waiting.decode() in visitor.page("/search?peer=berta&since=-1h&state=waiting")
        assert "No open message matches." in visitor.page("/search?peer=berta&to=2020-01-01T00:00&state=waiting")
        assert "No open message matches." in visitor.page("/search?peer=berta&from=2199-01-01T00:00&state=waiting")
    assert "No open message matches." in visitor.page("/search?peer=nobody")


def test_an_open_state_is_not_looked_for_in_the_journal_and_an_end_not_among_the_open(visitor: Visitor) -> None:
    live, ended = parts(visitor.page("/search?state=waiting"))
    assert "Open messages" in live
    assert not ended
    live, ended = parts(visitor.page("/search?state=cancelled"))
    assert "Open messages" not in live
    assert ended


def test_searching_further_back_shows_every_ended_message_once(broker: Daemon, visitor: Visitor) -> None:
    ids = done(broker, "many", 120)
    path: str | None = "/search?queue=many&state=done"
    seen: list[str] = []
    for _ in range(5):
        assert path is not None
        ended = parts(visitor.page(path))[1]
        seen += re.findall(r'<span class="soft name">(id-\d+)</span></td><td data-th="Queue">', ended)
        link = re.search(r'<a rel="next" href="([^"]+)">Search further back', ended)
        path = unescape(link[1]) if link else None
        if path is None:
            break
    assert path is None
    assert "Open messages" in visitor.page("/search?queue=many")
    assert "Open messages" not in visitor.page("/search?queue=many&before=99999"), "further back there are only ends"
    assert sorted(seen) == sorted(ids)
    assert len(seen) == 120


def test_the_journal_is_searched_once_for_a_page(broker: Daemon, visitor: Visitor) -> None:
    done(broker, "single", 1)
    assert ENDED in visitor.page("/search?queue=single")
    name, html = visitor.events("/search?queue=single", 1)[0]
    assert name == "live"
    assert ENDED not in html
    assert "Open messages" in html


def test_the_fields_keep_what_was_asked(visitor: Visitor) -> None:
    html = visitor.page("/search?peer=%22x&state=done&since=-1h&from=2026-01-02T03:04:05&to=2099-01-01T00:00")
    assert 'value="&#34;x"' in html
    assert "<option selected>done</option>" in html
    assert '<option value="-1h" selected>' in html
    assert 'value="2026-01-02T03:04:05"' in html


@pytest.mark.parametrize(
    "query",
    ["from=yesterday", "since=-9d", "from=2026-01-02T00:00&to=2026-01-01T00:00", "state=done&dialect=latin"],
)
def test_what_cannot_be_is_refused_in_words(visitor: Visitor, query: str) -> None:
    answer = visitor.get(f"/search?{query}")
    assert answer.status == 400
    assert "Not possible" in answer.text


def test_names_of_peers_are_only_text(broker: Daemon, visitor: Visitor, app: App) -> None:
    hostile = '"><script>alert(1)</script>'
    done(broker, "hostile", 1, hostile.encode())
    html = wait_for("the row", lambda: parts(visitor.page(f"/search?peer={quote(hostile)}"))[1])
    assert "&lt;script&gt;alert(1)" in html
    assert "<script>alert" not in html
