"""A page of another origin, in a real browser, sends whatever a browser can to every port of the broker: nothing is enqueued, nothing stops."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.daemon import LISTENERS, Daemon
from tests.runtime.peers import Client
from tests.runtime.sleds import bodies
from tests.waiting import wait_for
from tests.web.browser import LOAD_S, Browser, chromium
from tests.web.conftest import daemon_with_page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

REFUSED = "peer refused by its first bytes"
# Everything a script may send to another origin without asking it first, and a WebSocket. Each ends in an error or an opaque answer.
ATTACK = """
const [addresses, bodies, done] = arguments;
const bytes = bodies.map(text => Uint8Array.from(atob(text), c => c.charCodeAt(0)));
const waits = [];
for (const address of addresses) {
  for (const body of bytes) {
    waits.push(fetch(address, {method: 'POST', mode: 'no-cors', body}).then(() => 'answered', () => 'failed'));
    waits.push(Promise.resolve(navigator.sendBeacon(address, body)));
  }
  waits.push(fetch(address, {mode: 'no-cors'}).then(() => 'answered', () => 'failed'));
  waits.push(fetch(address, {method: 'DELETE'}).then(() => 'answered', () => 'failed'));
  waits.push(new Promise(resolve => {
    const socket = new WebSocket(address.replace('http', 'ws'));
    socket.onopen = () => { socket.send(bytes[0]); resolve('opened'); };
    socket.onerror = () => resolve('failed');
  }));
}
Promise.all(waits).then(done);
"""


class Elsewhere(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title>")

    def log_message(self, *args: Any) -> None:
        pass  # not on the test's stderr


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Daemon]:
    """ZMTP 1.0 is on everywhere: what is refused is refused for what it is."""
    legacy = "emqp.*,ebus.*,pingpong.*,scale0.*"
    broker = daemon_with_page(tmp_path / "data", f"security.legacy_greetings={legacy}", "emqp.remote_stop=true").start()
    yield broker
    broker.kill()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Browser]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with chromium(f"http://127.0.0.1:{server.server_port}", tmp_path / "profile") as browser:
        browser.open("/")
        yield browser
    server.shutdown()
    server.server_close()


def sent(page: Browser, addresses: list[str], listener: str) -> list[Any]:
    told = [base64.b64encode(body).decode() for body in bodies(listener)]
    found = page.driver.execute_async_script(ATTACK, addresses, told)
    assert isinstance(found, list)
    return found


def test_a_page_of_another_origin_enqueues_nothing_and_stops_nothing(broker: Daemon, page: Browser) -> None:
    for listener in LISTENERS:
        host, port = broker.place(listener)
        found = sent(page, [f"http://{host}:{port}/{'x' * 70}", f"http://localhost:{port}/"], listener)
        assert "opened" not in found

        def is_refused(listener: str = listener) -> bool:
            return {line["code"] for line in broker.lines(REFUSED) if line["listener"] == listener} == {
                "HTTP_NOT_SPOKEN"
            }

        wait_for(f"the refusal at {listener}: the requests did come", is_refused, LOAD_S)
    with Client(broker) as client:
        client.keep(b"still-here")
    assert [(queue["queue"], queue["waiting"]) for queue in broker.ask("queues")["queues"]] == [("still-here", 1)]
    assert broker.process.is_running()
    assert not broker.lines("draining")


def test_a_page_of_another_origin_changes_nothing_through_the_brokers_own_page(broker: Daemon, page: Browser) -> None:
    with Client(broker) as client:
        client.keep(b"mine")
    host, port = broker.place("http")
    for path in ("do/purge?queue=mine", "do/purge", "login", "logout", "stream", "metrics"):
        found = sent(page, [f"http://{host}:{port}/{path}", f"http://localhost:{port}/{path}"], "emqp.client")
        assert "opened" not in found
    read = page.driver.execute_async_script(
        "const [address, done] = arguments; fetch(address).then(r => r.text(), () => 'failed').then(done)",
        f"http://{host}:{port}/queues",
    )
    assert read == "failed"
    assert [(queue["queue"], queue["waiting"]) for queue in broker.ask("queues")["queues"]] == [("mine", 1)]
