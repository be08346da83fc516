"""What commands and workers of the tests say."""

from __future__ import annotations

from tests.cli.broker import Commands


def send(dragoman: Commands, queue: str = "mail", *options: str) -> str:
    found = dragoman("send", queue, "{}", "--json", *options)
    return str(found.json["id"])


def echo(body: bytes) -> bytes:
    return b'{"value":%s}' % body


def fail(body: bytes) -> bytes:
    return b'{"error":{"type":"ValueError","message":"no such address"}}'
