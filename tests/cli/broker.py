"""The broker as a process, a worker thread to serve it, and the command line as a function."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.options import address_of
from dragoman.cli.ports import lasting_addresses
from dragoman.cli.root import run
from dragoman.runtime.config.listeners import LISTENERS
from dragoman.wire.zmtp.frames import encode_message
from tests.cli.raw_emqp import RawEmqp

START_S = 60.0
WAIT_S = 60.0
END_S = 60.0  # a stop waits for a sealer, which runs when nobody else wants to


def wait_for(what: str, look: Callable[[], Any]) -> Any:
    """What `look` returns once that is true."""
    end_s = time.monotonic() + WAIT_S
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end_s, f"{what} did not come within {WAIT_S:g} s"
        time.sleep(0.01)


class BrokerProcess:
    """`dragoman up` on free ports."""

    def __init__(self, data: Path, *flags: str, durability: str = "os") -> None:
        self.data = data
        self.flags = [
            *(f"--listen={name}={address}" for name, address in lasting_addresses(LISTENERS).items()),
            "--listen=http=off",
            f"--durability={durability}",
            *flags,
        ]
        self.workers: list[FakeWorker] = []
        self.start()

    def serve(self, queue: bytes, answer: Callable[[bytes], bytes] | None, slots: int = 1) -> FakeWorker:
        """A worker, which goes when the broker does."""
        self.workers.append(FakeWorker(self.data, queue, answer, slots))
        return self.workers[-1]

    def start(self) -> None:
        card = self.data / "broker.json"
        card.unlink(missing_ok=True)
        log = self.data.with_name(self.data.name + ".log")
        command = [sys.executable, "-m", "dragoman", "up", "--data", str(self.data), "--set=lake.mode=off", *self.flags]
        with log.open("ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=dict(os.environ))

        def is_up() -> bool:
            assert self.process.poll() is None, log.read_text()
            return card.exists()

        wait_for("broker.json", is_up)

    def end(self, sign: int = signal.SIGKILL) -> None:
        if self.process.poll() is None:
            self.process.send_signal(sign)
        self.process.wait(END_S)
        for fake_worker in self.workers:
            fake_worker.vanish()


@dataclass
class Outcome:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self
        return json.loads(self.out)


class Commands:
    """Calls `dragoman` in this process with `--data` filled in."""

    def __init__(self, data: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.data = data
        self._capfd = capfd

    def __call__(self, *arguments: str) -> Outcome:
        return self.plain(*arguments, "--data", str(self.data))

    def plain(self, *arguments: str) -> Outcome:
        """Without `--data`."""
        self._capfd.readouterr()
        code = run(list(arguments))
        out, err = self._capfd.readouterr()
        return Outcome(code, out, err)


class FakeWorker:
    """A worker in a thread: answers every request of its queue with what `answer` makes of the body, or holds it."""

    def __init__(self, data: Path, queue: bytes, answer: Callable[[bytes], bytes] | None, slots: int = 1) -> None:
        self.talk = RawEmqp(address_of(None, data), "worker")
        self.held: list[bytes] = []
        self._answer = answer
        frames = [b"INFORM", self.talk.ids.take(), b'[[10,"%s"]]' % queue, b"worker", b"bytes"]
        self.say(*frames)
        for _ in range(slots):
            self.say(b"READY", self.talk.ids.take())
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def say(self, *frames: bytes) -> None:
        self.talk.send(encode_message([b"", b"eMQP/1.0", *frames]))

    def reply(self, request_id: bytes, value: bytes = b'{"value":1}') -> None:
        self.say(b"REPLY", self.talk.ids.take(), value, request_id)

    def _serve(self) -> None:
        try:
            for frames in self.talk.messages():
                if frames[2] == b"HEARTBEAT":
                    self.say(b"HEARTBEAT", self.talk.ids.take(), b"1.0")
                elif frames[2] == b"REQUEST":
                    self.held.append(frames[3])
                    if self._answer is not None:
                        self.reply(frames[3], self._answer(frames[6]))
                        self.say(b"READY", self.talk.ids.take())
        except Exception:  # the connection ended under it, which is how a test ends it
            return

    def vanish(self) -> None:
        """Die without a word."""
        self.talk.close()
        self._thread.join(WAIT_S)
