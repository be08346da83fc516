"""`dragoman send`, `call`, `publish` and `subscribe`: messages by hand and from scripts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from dragoman.cli import sides
from dragoman.cli.options import data_option, json_option, url_option
from dragoman.cli.show import print_json, print_json_line, print_lines
from dragoman.cli.talk import Talk, address_of
from dragoman.client.options import dedupe_text
from dragoman.client.tongue import EMQP
from dragoman.dialects.emqp.client_side import ANSWERED
from dragoman.errors import JobFailed, NoAnswer, Refused
from dragoman.limits import ERROR_TEXT_SIZE_MAX, NAME_SHOWN_SIZE_MAX
from dragoman.printable import cut, printable, printable_bytes

F = TypeVar("F", bound=Callable[..., Any])


def message_options(command: F) -> F:
    """What `send` and `call` share, in the order `--help` shows it."""
    for decorate in (
        json_option,
        data_option,
        url_option,
        click.option("--header", "headers", multiple=True, metavar="NAME[:VALUE]", help="Any eMQP header; repeatable."),
        click.option("--job-timeout", type=float, metavar="SECONDS", help="Bound on one attempt."),
        click.option("--retries", type=click.IntRange(0), help="Further attempts after a failure."),
        click.option("--expires", type=float, metavar="SECONDS", help="Not worth delivering after so long."),
        click.option("--delay", type=float, metavar="SECONDS", help="Not before so long."),
        click.option("--priority", type=click.IntRange(0, 9), help="0 (the usual) to 9 (first)."),
        click.option("--dedupe", metavar="KEY", help="Accepted only once while the key is remembered."),
        click.option("--guarantee", is_flag=True, help="Not settled before a success."),
        click.option(
            "--job",
            metavar="MODULE:FUNCTION",
            help="Call this job; BODY is then its arguments, a JSON list or object (default: none).",
        ),
        click.argument("body", required=False),
        click.argument("queue"),
    ):
        command = decorate(command)
    return command


def header_text(first: str, options: dict[str, Any]) -> str:
    """The csv an eMQP request carries."""
    parts = [first, *options["headers"]]
    if options["guarantee"]:
        parts.append("guarantee")
    for option, header in (
        ("retries", "retry-count"),
        ("job_timeout", "timeout"),
        ("expires", "expires"),
        ("delay", "delay"),
        ("priority", "priority"),
    ):
        value = options[option]
        if value is not None:
            parts.append(f"{header}:{value:.9g}" if isinstance(value, float) else f"{header}:{value}")
    if options["dedupe"] is not None:
        parts.append(f"dedupe:{dedupe_text(options['dedupe'])}")
    return ",".join(parts)


def read_body(body: str | None, job: str | None) -> bytes:
    """The argument itself, `@FILE`, or `-` for stdin; with --job the shape EventMQ's jobs have."""
    if body == "-":
        data = sys.stdin.buffer.read()
    elif body is not None and body.startswith("@"):
        data = Path(body[1:]).read_bytes()
    else:
        data = (body or "").encode("utf-8", "surrogateescape")
    return data if job is None else job_body(job, data)


def job_body(job: str, data: bytes) -> bytes:
    path, colon, name = job.rpartition(":")
    if not colon or not path or not name:
        raise click.BadParameter("expected MODULE:FUNCTION", param_hint="--job")
    try:
        arguments = msgspec.json.decode(data) if data.strip() else []
    except msgspec.DecodeError as error:
        raise click.BadParameter(f"with --job it is JSON: {error}", param_hint="BODY") from error
    if not isinstance(arguments, list | dict):
        raise click.BadParameter("with --job it is a JSON list (args) or object (kwargs)", param_hint="BODY")
    args, kwargs = (arguments, {}) if isinstance(arguments, list) else ([], arguments)
    call = {"path": path, "callable": name, "args": args, "kwargs": kwargs, "class_args": [], "class_kwargs": {}}
    return msgspec.json.encode(["run", call])


@click.command()
@message_options
@click.option(
    "--wait", type=click.FloatRange(0), default=30.0, show_default=True, help="Seconds to wait for the broker."
)
def send(queue: str, body: str | None, job: str | None, wait: float, as_json: bool, **options: Any) -> None:
    """Send a message with BODY (text, @FILE, or - for stdin) to QUEUE and print its id.

    Done when the broker has kept it at its durability; nobody need serve the queue yet.
    """
    data = read_body(body, job)
    address = address_of(options["url"], options["data"])
    if address.tongue is not EMQP:
        message_id, _ = sides.say(address, queue, data, options, False, wait)
    else:
        with Talk(address, "client") as talk:
            message_id = talk.request(queue, header_text("ack-requested", options), data)
            what, value = talk.answer(message_id, wait)
        if what == ANSWERED:  # only a refusal is answered before it is kept
            raise refusal(value)
    print_json({"id": message_id.decode(), "queue": queue}) if as_json else print_lines([message_id.decode()])


@click.command()
@message_options
@click.option(
    "--wait", type=click.FloatRange(0), default=60.0, show_default=True, help="Seconds to wait; 0 is for ever."
)
@click.option("--raw", is_flag=True, help="Print the worker's bytes as they came.")
def call(queue: str, body: str | None, job: str | None, wait: float, raw: bool, as_json: bool, **options: Any) -> None:
    """Send a message with BODY (text, @FILE, or - for stdin) to QUEUE, wait for its answer and print it.

    Exit code 1 when the job failed, was refused, or did not answer in time (it may still run).
    """
    data = read_body(body, job)
    address = address_of(options["url"], options["data"])
    if address.tongue is not EMQP:
        message_id, value = sides.say(address, queue, data, options, True, wait)
    else:
        with Talk(address, "client") as talk:
            message_id = talk.request(queue, header_text("reply-requested", options), data)
            _, value = talk.answer(message_id, wait)
    if raw:
        sys.stdout.buffer.write(value)
        sys.stdout.buffer.flush()
        return
    show_answer(message_id, value, as_json)


def show_answer(message_id: bytes, value: bytes, as_json: bool) -> None:
    try:
        answer = msgspec.json.decode(value)
    except msgspec.DecodeError:
        answer = {"value": value.decode("utf-8", "backslashreplace")}
    if isinstance(answer, dict) and "error" in answer:
        raise refusal(value)
    result = answer["value"] if isinstance(answer, dict) and "value" in answer else answer
    if as_json:
        print_json({"id": message_id.decode(), "value": result})
    elif isinstance(result, str):
        print_lines([result])
    else:
        print_json(result)


def refusal(value: bytes) -> JobFailed | Refused:
    """An error answer as an exception: the broker's codes are in capitals, a job's error is a type."""
    try:
        error = msgspec.json.decode(value)["error"]
        kind, message = str(error.get("type", "")), str(error.get("message", ""))
    except (msgspec.DecodeError, TypeError, KeyError, AttributeError):
        return JobFailed("unreadable answer", printable_bytes(value, 200))
    kind, message = cut(kind, NAME_SHOWN_SIZE_MAX), cut(message, ERROR_TEXT_SIZE_MAX)
    return Refused(kind, message) if kind.isupper() else JobFailed(kind, message)


@click.command()
@click.argument("topic")
@click.argument("body", required=False)
@url_option
@data_option
@json_option
def publish(topic: str, body: str | None, url: str | None, data: Path, as_json: bool) -> None:
    """Publish BODY (text, @FILE, or - for stdin) to TOPIC.

    It reaches whoever subscribes at that moment; nobody is no error, and nothing is kept.
    """
    address = address_of(url, data)
    if address.tongue is not EMQP:
        sides.publish(address, topic, read_body(body, None))
    else:
        with Talk(address, "publish") as talk:
            talk.publish(topic, read_body(body, None))
    if as_json:
        print_json({"topic": topic})


@click.command()
@click.argument("prefixes", nargs=-1, metavar="[PREFIX]...")
@click.option("--count", type=click.IntRange(1), help="End after so many.")
@click.option(
    "--wait", type=click.FloatRange(0), help="End after so many seconds; exit code 1 if --count was not reached."
)
@url_option
@data_option
@json_option
def subscribe(
    prefixes: tuple[str, ...], count: int | None, wait: float | None, url: str | None, data: Path, as_json: bool
) -> None:
    """Print what is published to topics that begin with PREFIX (all, when none is given), until interrupted.

    With --json one object per line.
    """
    address = address_of(url, data)
    news = News(count, as_json)
    if address.tongue is not EMQP:
        sides.subscribe(address, prefixes or ("",), wait, tell_subscribed, news.show)
    else:
        with Talk(address, "subscribe", b"SUB") as talk:
            for prefix in prefixes or ("",):
                talk.subscribe(prefix)
            tell_subscribed()
            for frames in talk.messages(time.monotonic() + wait if wait is not None else None):
                if news.show(frames[0], b"".join(frames[1:])):
                    break
    if count is not None and news.heard < count:
        raise NoAnswer(f"a subscription ({news.heard} of {count} came)", wait or 0)


def tell_subscribed() -> None:
    print("subscribed", file=sys.stderr, flush=True)


class News:
    """What a subscription brings, shown as it comes."""

    def __init__(self, count: int | None, as_json: bool) -> None:
        self.heard = 0
        self._count = count
        self._as_json = as_json

    def show(self, topic: bytes, body: bytes) -> bool:
        """True when it was the last one asked for."""
        shown, text = topic.decode("utf-8", "backslashreplace"), body.decode("utf-8", "backslashreplace")
        if self._as_json:
            print_json_line({"topic": shown, "body": text})
        else:
            print(f"{printable(shown)}\t{printable(text)}", flush=True)
        self.heard += 1
        return self.heard == self._count
