"""SIGHUP: settings change under a running broker, and a mistake in them changes nothing."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import AdminRefused
from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client, Worker, exchange
from tests.waiting import wait_for


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "dragoman.toml"
    path.write_text("")
    return path


@pytest.fixture
def configured(new_broker: NewBroker, settings: Path) -> Daemon:
    broker = new_broker(flags=("--config", str(settings)))
    return broker.start()


def reload(broker: Daemon) -> dict[str, Any]:
    """SIGHUP once; what the broker said about it."""
    broker.send_signal(signal.SIGHUP)
    return broker.wait_line("reloaded")


def test_a_changed_limit_takes_effect(configured: Daemon, settings: Path) -> None:
    with Client(configured) as client:
        client.keep(b"mail")
        settings.write_text("[limits]\nqueue_messages_max = 1\n")
        assert reload(configured)["applied"] == ["limits.queue_messages_max"]
        assert client.refusal(client.request(b"mail")) == "QUEUE_FULL"


def test_a_changed_queue_setting_takes_effect(configured: Daemon, settings: Path) -> None:
    settings.write_text("[queues]\ntimeout_s = 0.05\n")
    assert reload(configured)["applied"] == ["queues.timeout_s"]
    with Client(configured) as client, Worker(configured, b"mail") as worker:
        request_id = client.request(b"mail", b"reply-requested")
        worker.take()
        assert client.refusal(request_id) == "TIMED_OUT"


def test_a_changed_journal_size_takes_effect(new_broker: NewBroker, settings: Path) -> None:
    broker = new_broker("journal.segment_size=64KiB", flags=("--config", str(settings))).start()
    with Client(broker) as client, Worker(broker, b"mail", slots=100) as worker:
        exchange(client, worker, b"mail", 80, 32768)
        assert broker.ask("status")["journal"]["size"] > 2 * 2**20
        settings.write_text('[journal]\nsize_max = "1MiB"\n')
        assert reload(broker)["applied"] == ["journal.size_max"]

        def is_small() -> bool:
            exchange(client, worker, b"mail", 1, 32768)
            return bool(broker.ask("status")["journal"]["size"] < 1.5 * 2**20)

        wait_for("the journal to keep to its new size", is_small)


def test_a_setting_of_the_start_is_reported_to_need_a_restart(configured: Daemon, settings: Path) -> None:
    settings.write_text("[schedules]\ntimezone = 'Europe/Zurich'\n")
    told = reload(configured)
    assert told["applied"] == []
    assert told["needs_restart"] == ["schedules.timezone"]


def test_a_changed_address_is_reported_to_need_a_restart_and_the_old_one_goes_on(
    new_broker: NewBroker, settings: Path
) -> None:
    settings.write_text('[listen]\nemqp.client = "tcp://127.0.0.1:0"\n')
    listen = dict.fromkeys(("emqp.worker", "emqp.admin", "emqp.publish", "emqp.subscribe"), "off")
    broker = new_broker(listen=listen, flags=("--config", str(settings))).start()
    settings.write_text('[listen]\nemqp.client = "tcp://127.0.0.1:1"\n')
    assert reload(broker)["needs_restart"] == ["listen.emqp.client"]
    with Client(broker) as client:
        client.keep(b"mail")


@pytest.mark.parametrize("text", ["[limits\n", "[limits]\nconnections_max = 0\n", "[nonsense]\nx = 1\n"])
def test_a_broken_file_is_reported_and_leaves_the_broker_as_it_was(
    configured: Daemon, settings: Path, text: str
) -> None:
    settings.write_text(text)
    configured.send_signal(signal.SIGHUP)
    assert str(settings) in configured.wait_line("reload failed, settings unchanged")["error"]
    with pytest.raises(AdminRefused):
        configured.ask("reload")
    with Client(configured) as client:
        client.keep(b"mail")
    assert configured.stop() == 0
    assert all(line["event"] for line in configured.lines()), "every line is JSON, none a traceback"


def test_the_log_level_changes_with_a_reload(configured: Daemon, settings: Path) -> None:
    settings.write_text("[log]\nlevel = 'error'\n")
    configured.ask("reload")
    seen = len(configured.lines())
    configured.ask("reload")
    assert configured.stop() == 0
    assert len(configured.lines()) == seen, "what is only information is not said any more"
