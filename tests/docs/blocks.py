"""The fenced blocks of a page, and a directory in which they run as in a clone after `make up`.

```sh blocks run in one shell per page, in order. A ```python block that begins with `# NAME.py` is written to that file; any other
one is run. A ```text block right behind a block that ran is what that block prints. Other languages are not run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from dragoman.runtime.config.listeners import LISTENERS
from tests.runtime.daemon import FREE, Daemon
from tests.waiting import wait_for

BLOCK_S = 60.0  # a block starts a few Python programs, on a machine that may be busy
END_S = 60.0
END_MARK = "--- end of block"

# Lines that are not run, each with its reason.
NOT_RUN = {
    "make up": "the fixture starts the broker, on free ports",
    "make demo": "takes two minutes; tests/crossings/test_demo.py and tests/spark/test_demo_report.py run it",
    "python3 -m venv dragoman-env": "would fetch and build every package again; `make test` has done the same with .venv",
    "dragoman-env/bin/pip install -c constraints.txt .": "same",
    "dragoman-env/bin/dragoman up --data ./data": "same",
}

# What differs between two runs of the same command.
VARIABLE = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\b\d\d:\d\d:\d\d(\.\d+)?"), "TIME"),
    (re.compile(r"\+?\b\d+(\.\d+)? (µs|ms|s|min|h)\b"), "SPAN"),
    (re.compile(r"─+"), "─"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Block:
    """One fenced block. `prints` is None where the page does not say what it prints."""

    language: str
    text: str
    line: int
    prints: str | None = None

    @property
    def file_name(self) -> str | None:
        found = re.match(r"# (\w+\.py)\n", self.text)
        return found[1] if found else None


def blocks_of(page: Path) -> list[Block]:
    found: list[Block] = []
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        block = Block(match[1], match[2], text.count("\n", 0, match.start()) + 1)
        if block.language == "text" and found and found[-1].language in ("sh", "python"):
            found[-1] = Block(found[-1].language, found[-1].text, found[-1].line, block.text)
        else:
            found.append(block)
    return found


def without_comment(line: str) -> str:
    return re.sub(r"\s+#.*", "", line)


def plain(printed: str) -> list[str]:
    """Lines without what differs between two runs."""
    for pattern, name in VARIABLE:
        printed = pattern.sub(name, printed)
    return [line.strip() for line in printed.strip().splitlines()]


class Clone:
    """A directory that looks like a clone after `make up`: `.venv/bin`, `data`, and a broker on free ports."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._make_programs()
        self.broker = Daemon(root / "data", durability="disk", listen=dict.fromkeys(LISTENERS, FREE)).start()
        self._out, self._err = root / "shell.out", root / "shell.err"
        self._read_size = 0
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._shell = subprocess.Popen(
                ["bash"], cwd=root, env=environment(), stdin=subprocess.PIPE, stdout=out, stderr=err
            )
        self._type("set -em")  # ends at the first failure; `kill %1` works, as in a terminal

    def _make_programs(self) -> None:
        programs = self.root / ".venv" / "bin"
        programs.mkdir(parents=True)
        python = shlex.quote(sys.executable)
        for name, command in (("python", python), ("dragoman", f"{python} -m dragoman")):
            (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            (programs / name).chmod(0o755)
        (programs / "activate").write_text(f"PATH={shlex.quote(str(programs))}:$PATH\n")

    def with_addresses(self, text: str) -> str:
        """The default address is the one thing that a page cannot print as it is here."""
        return text.replace("emqp://127.0.0.1", f"file:{self.broker.data}")

    def run(self, block: Block) -> None:
        """Run one block; fail with its place if it fails or prints something else than the page says."""
        if block.language == "python" and block.file_name:
            (self.root / block.file_name).write_text(self.with_addresses(block.text))
            return
        if block.language == "python":
            (self.root / "block.py").write_text(self.with_addresses(block.text))
            printed = self.run_shell(".venv/bin/python block.py\n")
        else:
            printed = self.run_shell(block.text)
        if block.prints is not None:
            assert plain(printed) == plain(block.prints), f"the block at line {block.line} prints something else"

    def run_shell(self, text: str) -> str:
        """What the lines print; returns when the last one has ended, or runs in the background."""
        lines = [":" if without_comment(line) in NOT_RUN else line for line in text.splitlines()]
        self._type(*lines, f"echo '{END_MARK}'")

        def has_ended() -> bool:
            assert self._shell.poll() is None, f"it failed:\n{text}\n{self._err.read_text()}"
            return END_MARK in self._unread()

        wait_for(f"the end of {text!r}", has_ended, BLOCK_S)
        printed = self._unread()
        self._read_size += len(printed.encode())
        if re.search(r"dragoman subscribe .*&$", text, re.MULTILINE):  # a reader is slower than that
            wait_for("the subscription", lambda: self.broker.ask("tallies")["subscriptions"], BLOCK_S)
        return printed.replace(END_MARK + "\n", "")

    def _type(self, *lines: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write("".join(f"{line}\n" for line in lines).encode())
        self._shell.stdin.flush()

    def _unread(self) -> str:
        return self._out.read_bytes()[self._read_size :].decode()

    def close(self) -> None:
        assert self._shell.stdin is not None
        left = psutil.Process(self._shell.pid).children(recursive=True) if self._shell.poll() is None else []
        for process in [*left, self._shell]:
            process.kill()
        psutil.wait_procs(left, END_S)
        self._shell.wait(END_S)
        self._shell.stdin.close()
        self.broker.kill()


def environment() -> dict[str, str]:
    """Ours, without settings of a broker; sources that are under test are found from any directory."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    if "PYTHONPATH" in env:
        env["PYTHONPATH"] = os.pathsep.join(str(Path(part).absolute()) for part in env["PYTHONPATH"].split(os.pathsep))
    return env
