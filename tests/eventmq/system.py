"""One broker, the original programs started against it, and the file that their jobs write to (`book`)."""

from __future__ import annotations

import ast
import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.eventmq.brokers import Dragoman, Original
from tests.eventmq.programs import PROGRAMS, Client, Program
from tests.waiting import DEADLINE_S, wait_for

CLI_S = 60.0


class EventMqSystem:
    def __init__(self, environment: Path, directory: Path, broker: Dragoman | Original) -> None:
        self.environment = environment
        self.directory = directory
        self.broker = broker
        self.book = directory / "book"
        self.book.touch()
        self.programs: list[Program] = []
        self.numbers = itertools.count(1)

    def env(self, **sections: dict[str, Any]) -> dict[str, str]:
        """The environment of an original program: only the addresses in this file differ from a real installation."""
        listeners = self.broker.listeners
        everywhere = {
            "scheduler_addr": listeners["emqp.client"],
            "worker_addr": listeners["emqp.worker"],
            "worker_addr_default": listeners["emqp.worker"],
            "worker_addr_failover": listeners["emqp.worker"],
            "rq_port": "1",  # nobody listens there: a scheduler must not find a developer's own Redis
        }
        config = self.directory / f"eventmq-{next(self.numbers)}.conf"
        lines = ["[global]", *(f"{name} = {value}" for name, value in everywhere.items())]
        for section in ("jobmanager", "scheduler"):
            lines += [f"[{section}]", *(f"{name} = {value}" for name, value in sections.get(section, {}).items())]
        config.write_text("\n".join(lines) + "\n")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVENTMQ_", "PYTHON"))}
        return {
            **kept,
            "PYTHONPATH": str(PROGRAMS),
            "PYTHONDONTWRITEBYTECODE": "1",
            "EVENTMQ_CONFIG_FILE": str(config),
            "EMQ_BROKER_ADDR": listeners["emqp.client"],
        }

    def start(self, kind: str, command: list[str], env: dict[str, str], piped: bool = False) -> Program:
        name = f"{kind}-{next(self.numbers)}"
        program = Program(name, [str(self.environment / "python"), *command], env, self.directory / "logs", piped)
        self.programs.append(program)
        return program

    def job_manager(self, queues: list[tuple[int, str]], slots: int = 2, **settings: Any) -> Program:
        settings = {"queues": json.dumps(queues), "concurrent_jobs": slots, **settings}
        return self.start("jobmanager", [str(self.environment / "emq-jobmanager")], self.env(jobmanager=settings))

    def job_manager_by_flags(self, *flags: str) -> Program:
        """A job manager told its queues by `-Q`: the original then names none at all, which means `default`."""
        address = self.broker.listeners["emqp.worker"]
        return self.start("jobmanager", [str(self.environment / "emq-jobmanager"), "-B", address, *flags], self.env())

    def scheduler(self) -> Program:
        return self.start("scheduler", [str(self.environment / "emq-scheduler")], self.env())

    def client(self) -> Client:
        return Client(self.start("client", [str(PROGRAMS / "talk.py")], self.env(), piped=True), self.broker.listeners)

    def run(self, script: str, *arguments: str) -> str:
        """Run a short program of `site` to its end and return what it printed."""
        done = subprocess.run(
            [str(self.environment / "python"), str(PROGRAMS / script), *arguments],
            env=self.env(),
            capture_output=True,
            text=True,
            timeout=CLI_S,
            check=True,
        )
        return done.stdout

    def admin(self, *commands: str) -> str:
        """Type the commands into the original's `emq-cli` and return what it printed."""
        done = subprocess.run(
            [
                str(self.environment / "python"),
                str(self.environment / "emq-cli"),
                "--addr",
                self.broker.listeners["emqp.admin"],
            ],
            input="\n".join([*commands, "quit"]) + "\n",
            env=self.env(),
            capture_output=True,
            text=True,
            timeout=CLI_S,
            check=False,
        )
        assert done.returncode == 0, f"emq-cli failed:\n{done.stdout}{done.stderr}"
        return done.stdout

    def ask(self, command: str) -> dict[str, Any]:
        """The dictionary that `emq-cli` prints as the answer to one command."""
        printed = self.admin(command)
        value = ast.literal_eval(printed[printed.index("{") : printed.rindex("}") + 1])
        assert isinstance(value, dict)
        return value

    def workers_of(self, queue: str) -> list[str]:
        """The identities of the job managers that serve a queue, as the broker sees it."""
        return [name for _, name in self.ask("show_workers")["connected_queues"].get(queue, [])]

    def notes(self, word: str) -> list[dict[str, Any]]:
        """Every line of the book with that word, in order."""
        lines = [json.loads(line) for line in self.book.read_text().splitlines()]
        return [line for line in lines if line["word"] == word]

    def wait_notes(self, word: str, count: int = 1, deadline_s: float = DEADLINE_S) -> list[dict[str, Any]]:
        def look() -> list[dict[str, Any]]:
            seen = self.notes(word)
            return seen if len(seen) >= count else []

        return wait_for(f"{count} × {word!r} in the book", look, deadline_s)

    def gate(self) -> Path:
        """The path of a gate that is still shut; `touch` opens it."""
        return self.directory / f"gate-{next(self.numbers)}"

    def close(self) -> None:
        for program in self.programs:
            program.kill_group()
        self.broker.kill()

    def logs(self) -> str:
        texts = [f"--- {program.name}\n{program.log()[-6000:]}" for program in self.programs]
        return "\n".join([*texts, f"--- broker\n{self.broker.log()[-6000:]}"])
