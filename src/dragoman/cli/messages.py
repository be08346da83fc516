"""`dragoman send`, `call`, `publish` and `subscribe`: messages by hand and from scripts."""

from __future__ import annotations

import asyncio
import math
import sys
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from click import FloatRange, IntRange, argument, option

from dragoman.cli.options import address_of, all_options, common_options, url_option
from dragoman.cli.show import print_json, print_json_line, print_result
from dragoman.client import features
from dragoman.client.address import Address
from dragoman.client.caller import Caller
from dragoman.client.connection import ReconnectingConnection
from dragoman.client.news import Publisher, Subscriber
from dragoman.client.options import Options, call_options
from dragoman.errors import BrokerUnreachable, JobFailed, NoAnswer, Refused
from dragoman.limits import ERROR_TEXT_SIZE_MAX, NAME_SHOWN_SIZE_MAX
from dragoman.printable import cut, printable, printable_bytes

CONNECT_S: Final = 5.0
LOOK_S: Final = 0.05


# The options that `send` and `call` share.
message_options = all_options(
    argument("queue"),
    argument("body", required=False),
    option(
        "--job",
        metavar="MODULE:FUNCTION",
        help="Call this job; BODY is then its arguments, a JSON list or object (default: none).",
    ),
    option("--guarantee", is_flag=True, help="A failure or a timeout does not settle it."),
    option("--dedupe", metavar="KEY", help="Accepted only once while the key is remembered."),
    option("--priority", type=IntRange(0, 9), help="0 (the usual) to 9 (first)."),
    option("--delay", type=float, metavar="SECONDS", help="Not before so long."),
    option("--expires", type=float, metavar="SECONDS", help="Not worth delivering after so long."),
    option("--retries", type=IntRange(0), help="Further attempts after a failure."),
    option("--job-timeout", type=float, metavar="SECONDS", help="Bound on one attempt."),
    option("--header", "headers", multiple=True, metavar="NAME[:VALUE]", help="Any eMQP header; repeatable."),
    url_option,
    common_options,
)


def read_body(body: str | None, job: str | None) -> bytes:
    """The body from the argument itself, from `@FILE`, or from stdin for `-`; with --job in the format of EventMQ's jobs."""
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
@option("--wait", type=FloatRange(0), default=30.0, show_default=True, help="Seconds to wait for the broker.")
def send(queue: str, body: str | None, job: str | None, wait: float, as_json: bool, **options: Any) -> None:
    """Send a message with BODY (text, @FILE, or - for stdin) to QUEUE and print its id.

    Returns once the message is stored at the broker's durability. The queue need not have a worker yet.
    """
    message_id, _ = exchange(queue, read_body(body, job), options, False, wait)
    print_result({"id": message_id, "queue": queue}, as_json, message_id)


@click.command()
@message_options
@option("--wait", type=FloatRange(0), default=60.0, show_default=True, help="Seconds to wait; 0 is for ever.")
@option("--raw", is_flag=True, help="Print the worker's bytes as they came.")
def call(queue: str, body: str | None, job: str | None, wait: float, raw: bool, as_json: bool, **options: Any) -> None:
    """Send a message with BODY (text, @FILE, or - for stdin) to QUEUE, wait for its answer and print it.

    Exit code 1 when the job failed, was refused, or did not answer in time (it may still run).
    """
    message_id, value = exchange(queue, read_body(body, job), options, True, wait)
    if raw:
        sys.stdout.buffer.write(value)
        sys.stdout.buffer.flush()
        return
    show_answer(message_id, value, as_json)


def show_answer(message_id: str, value: bytes, as_json: bool) -> None:
    try:
        answer = msgspec.json.decode(value)
    except msgspec.DecodeError:
        answer = {"value": value.decode("utf-8", "backslashreplace")}
    if isinstance(answer, dict) and "error" in answer:
        raise error_of(value)
    result = answer["value"] if isinstance(answer, dict) and "value" in answer else answer
    if as_json:
        print_json({"id": message_id, "value": result})
    else:
        print_result(result, not isinstance(result, str), str(result))


def error_of(value: bytes) -> JobFailed | Refused:
    """An error reply as an exception: the broker's codes are in capitals, a job's error is a type."""
    try:
        error = msgspec.json.decode(value)["error"]
        kind, message = str(error.get("type", "")), str(error.get("message", ""))
    except (msgspec.DecodeError, TypeError, KeyError, AttributeError):
        return JobFailed("unreadable answer", printable_bytes(value, 200))
    kind, message = cut(kind, NAME_SHOWN_SIZE_MAX), cut(message, ERROR_TEXT_SIZE_MAX)
    return Refused(kind, message) if kind.isupper() else JobFailed(kind, message)


@click.command()
@argument("topic")
@argument("body", required=False)
@url_option
@common_options
def publish(topic: str, body: str | None, url: str | None, data: Path, as_json: bool) -> None:
    """Publish BODY (text, @FILE, or - for stdin) to TOPIC.

    It reaches those who are subscribed at that moment. It is not an error if there are none, and nothing is stored.
    """
    address = address_of(url, data)
    features.require(address.profile.name, features.PUBLISH)
    asyncio.run(publish_one(address, topic.encode("utf-8", "surrogateescape"), read_body(body, None)))
    if as_json:
        print_json({"topic": topic})


@click.command()
@argument("prefixes", nargs=-1, metavar="[PREFIX]...")
@option("--count", type=IntRange(1), help="End after so many.")
@option("--wait", type=FloatRange(0), help="End after so many seconds; exit code 1 if --count was not reached.")
@url_option
@common_options
def subscribe(
    prefixes: tuple[str, ...], count: int | None, wait: float | None, url: str | None, data: Path, as_json: bool
) -> None:
    """Print what is published to topics that begin with PREFIX (all, when none is given), until interrupted.

    With --json one object per line.
    """
    address = address_of(url, data)
    features.check_prefixes(address, prefixes or ("",))
    names = [prefix.encode("utf-8", "surrogateescape") for prefix in prefixes or ("",)]
    received = asyncio.run(print_news(address, names, count, wait, as_json))
    if count is not None and received < count:
        raise NoAnswer(f"a subscription ({received} of {count} came)", wait or 0)


def exchange(queue: str, body: bytes, given: dict[str, Any], wants_reply: bool, wait_s: float) -> tuple[str, bytes]:
    """Send a message and wait until it is stored or answered; return its id and the reply. Raises a ClientError."""
    address = address_of(given["url"], given["data"])
    try:
        options = Options(
            retries=given["retries"],
            timeout_s=given["job_timeout"],
            priority=given["priority"] or 0,
            delay_s=given["delay"] or 0.0,
            expires_s=given["expires"],
            dedupe=given["dedupe"],
            guarantee=given["guarantee"],
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    headers, wait_s = ",".join(given["headers"]), wait_s or math.inf
    call = call_options(address, queue, options, wants_reply, wait_s, headers, given["dedupe"])
    call.dedupes_by_id = False  # an unrequested dedupe key would keep the queue in use

    async def send_and_wait() -> tuple[str, bytes]:
        caller = Caller(address)
        caller.waits_for_next = False
        message_id = caller.ids.take()
        try:
            answer = caller.call(message_id, call, body, wait_s)
            await until_done(answer, caller.connection, address)
            return message_id.decode(), answer.result()
        finally:
            await caller.close()

    return asyncio.run(send_and_wait())


async def publish_one(address: Address, topic: bytes, body: bytes) -> None:
    publisher = Publisher(address, CONNECT_S)
    try:
        await until_done(publisher.publish(topic, body), publisher.connection, address)
        await publisher.flush()
    finally:
        await publisher.close()


async def print_news(
    address: Address, prefixes: list[bytes], count: int | None, wait_s: float | None, as_json: bool
) -> int:
    """Print published messages until there are `count` or the time is up; return how many were received."""
    received = 0
    done = asyncio.Event()

    def show(topic: bytes, body: bytes) -> None:
        nonlocal received
        if done.is_set():
            return
        name, text = topic.decode("utf-8", "backslashreplace"), body.decode("utf-8", "backslashreplace")
        if as_json:
            print_json_line({"topic": name, "body": text})
        else:
            print(f"{printable(name)}\t{printable(text)}", flush=True)
        received += 1
        if received == count:
            done.set()

    subscriber = Subscriber(address, prefixes, show)
    try:
        await until_done(asyncio.ensure_future(subscriber.up.wait()), subscriber.connection, address)
        print("subscribed", file=sys.stderr, flush=True)
        async with asyncio.timeout(wait_s):
            await until_done(asyncio.ensure_future(done.wait()), subscriber.connection, address)
    except TimeoutError:
        pass  # the caller knows how many came
    finally:
        await subscriber.close()
    return received


async def until_done(what: asyncio.Future[Any], connection: ReconnectingConnection[Any], address: Address) -> None:
    """Wait for the future, but fail if no broker of the address can be reached: a command does not wait for one to start."""
    while not what.done():
        await asyncio.wait([what], timeout=LOOK_S)
        if connection.failures >= max(1, len(address.hosts)) and not what.done():
            what.cancel()
            raise BrokerUnreachable(address.text, CONNECT_S, connection.problem)
    what.result()
