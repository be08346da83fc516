"""Names, ids and answers of strangers on a terminal and in JSON: nothing in them acts, whatever the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.cli import show
from tests.cli.broker import BrokerProcess, Commands, wait_for

QUEUE = "q\x1b[31m\x9b2J\u202e\u2028\x7f"
ACTING = ("\x1b", "\x9b", "\u202e", "\u2028", "\x7f", "\r")


def is_harmless(text: str) -> bool:
    return not any(char in text for char in ACTING) and all(c.isprintable() or c == "\n" for c in text)


@pytest.fixture
def broker(tmp_path: Path) -> BrokerProcess:
    return BrokerProcess(tmp_path / "data")


def test_no_command_passes_a_strangers_control_characters(
    broker: BrokerProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    dragoman = Commands(broker.data, capfd)
    try:
        sent = dragoman("send", QUEUE, "body", "--json")
        assert sent.code == 0, sent.err
        message_id = json.loads(sent.out)["id"]
        error = json.dumps({"error": {"type": "T\x1b[1m", "message": "m\x9b\x1b[2J\u202e"}}).encode()
        broker.serve(json.dumps(QUEUE)[1:-1].encode(), lambda body: error)
        failed = dragoman("call", QUEUE, "body", "--wait", "20")
        assert failed.code == 1
        assert "m" in failed.err
        broker.serve(b"value", lambda body: '{"value":["\x9b\u202e"]}'.encode())
        answered = dragoman("call", "value", "body", "--json")
        assert json.loads(answered.out)["value"] == ["\x9b\u202e"]
        wait_for("its end", lambda: "closed" in dragoman("trace", message_id).out)
        answers = [sent, failed, answered]
        for command in (
            ("trace", message_id),
            ("queues",),
            ("workers",),
            ("status",),
            ("find", "--queue", QUEUE),
            ("explain", f"queue:{QUEUE}"),
            ("trace", "no\x1b[2Jid"),
            ("cancel", "no\x9bid"),
            ("queues", "pause", "none\x1b]0;x\x07"),
            ("check",),
            ("no\x1bcommand",),
        ):
            answers.append(dragoman(*command))
            if len(command) > 1 or command[0] in ("queues", "workers", "status"):
                answers.append(dragoman(*command, "--json"))
        for answer in answers:
            assert is_harmless(answer.out), repr(answer.out)
            assert is_harmless(answer.err), repr(answer.err)
        shown = json.loads(dragoman("queues", "--json").out)["queues"]
        assert QUEUE in [queue["queue"] for queue in shown], "JSON means the same text"
    finally:
        broker.end()


def test_a_title_is_neither_markup_nor_control(capsys: pytest.CaptureFixture[str]) -> None:
    show.print_table("a\x1b[2J [red]b[/red]", ["ü"], [["ü" * 60]])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[red]b[/red]" in out
