"""Types of setting values: each kind describes what it expects, parses a value and writes it as TOML.

A value from the environment or a flag is always text. One from a TOML file has a type, so a number in quotes is an
error there. Only sizes and addresses are text in a file, too.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from dragoman.dialects.description import ZMTP
from dragoman.dialects.registry import LISTENERS_BY_NAME
from dragoman.dialects.scale0.configuration import documents, notations
from dragoman.dialects.scale0.configuration.tree import Node
from dragoman.errors import BadDocument

T = TypeVar("T")
UNITS: Final = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
HOST: Final = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
BINARY_UNITS: Final = {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}


@dataclass(frozen=True, slots=True)
class Kind:
    """How one setting is parsed (raises `ValueError` if invalid) and written. `read` gets the value, and whether it is text by its source."""

    expected: str
    read: Callable[[Any, bool], Any]
    write: Callable[[Any], str]
    is_secret: bool = False  # never shown


def checked(value: T, is_valid: object) -> T:
    if not is_valid:
        raise ValueError
    return value


def write_text(text: str) -> str:
    """Return `text` as a TOML basic string (JSON's escapes are a subset of TOML's)."""
    return json.dumps(text, ensure_ascii=False)


def _write_secret(value: object) -> str:
    return write_text("(set, not shown)" if value else "")


def _text(expected: str, is_valid: Callable[[str], object], *, is_secret: bool = False) -> Kind:
    def read(value: object, is_text: bool) -> object:
        return checked(value, isinstance(value, str) and is_valid(value))

    return Kind(expected, read, _write_secret if is_secret else write_text, is_secret)


def name() -> Kind:
    return _text("a name, not empty", lambda value: value and value.isprintable())


def text() -> Kind:
    return _text("a text", str.isprintable)


def one_of(*words: str) -> Kind:
    return _text("one of " + ", ".join(f'"{word}"' for word in words), words.__contains__)


def secret(least: int) -> Kind:
    """A text of at least `least` characters, or empty for none. It is never shown, neither as a setting nor in an error."""
    expected = f"a secret text of at least {least} characters, or an empty one"
    return _text(expected, lambda value: not value or (len(value) >= least and value.isprintable()), is_secret=True)


def web_address() -> Kind:
    """A URL to which the broker sends requests; user name and password are not allowed in it."""

    def is_valid(value: str) -> bool:
        parts = urlsplit(checked(value, re.fullmatch(r"[!-~]*", value)))  # a non-ASCII host name is written as xn--…
        has_port = parts.port is None or parts.port > 0  # reading `port` raises if it is not a number
        has_host = parts.scheme in ("http", "https") and parts.hostname and has_port
        return bool(not value or has_host) and not (parts.username is not None or parts.query or parts.fragment)

    return _text('an address such as "http://127.0.0.1:4318", or an empty text', is_valid)


def timezone() -> Kind:
    def is_valid(value: str) -> bool:
        try:
            return bool(value and ZoneInfo(value))
        except OSError:  # a directory of the zone database, such as "Europe"
            return False

    return _text('a time zone such as "UTC" or "Europe/Prague"', is_valid)


def integer(least: int, most: int | None = None) -> Kind:
    def read(value: object, is_text: bool) -> object:
        number = int(value.replace("_", "")) if is_text and isinstance(value, str) else value
        return checked(number, type(number) is int and number >= least and (most is None or number <= most))

    expected = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    return Kind(expected, read, lambda number: f"{number:_}")


def _number(expected: str, is_valid: Callable[[float], bool], write: Callable[[Any], str]) -> Kind:
    def read(value: object, is_text: bool) -> float:
        number = float(value) if is_text and isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int | float) or not is_valid(number):
            raise ValueError
        return float(number)

    return Kind(expected, read, write)


def seconds(least: float = 0.0, *, more_than_zero: bool = False) -> Kind:
    return _number(
        "a number of seconds greater than 0" if more_than_zero else f"a number of seconds, at least {least:g}",
        lambda number: least <= number < 10**10 and not (more_than_zero and number == 0),
        lambda number: f"{number:g}" if number < 10**6 else repr(number),
    )


def ratio() -> Kind:
    return _number("a number from 0 to 1", lambda number: 0 <= number <= 1, lambda number: f"{number:g}")


def size(least: int = 1, *, or_zero: bool = False) -> Kind:
    """A number of bytes. `or_zero`: 0 lets the program choose."""

    def read(value: object, is_text: bool) -> object:
        if isinstance(value, str):
            match = re.fullmatch(r"(\d[\d_]*)\s*([A-Za-z]*)", value.strip())
            if match is None:
                raise ValueError
            value = int(match[1].replace("_", "")) * (UNITS | BINARY_UNITS)[match[2]]
        return checked(value, type(value) is int and (value >= least or (or_zero and value == 0)))

    example = '0, or a size such as "1GiB"' if or_zero else 'a size such as "64MiB" or a number of bytes'
    return Kind(f"{example}, at least {size_text(least)}", read, _write_size)


def size_text(size_bytes: int) -> str:
    """Return a size as an operator would write it: `64MiB`, or plain bytes when no unit divides it."""
    for unit, scale in BINARY_UNITS.items():
        if size_bytes and size_bytes % scale == 0:
            return f"{size_bytes // scale}{unit}"
    return str(size_bytes)


def _write_size(size_bytes: int) -> str:
    written = size_text(size_bytes)
    return written if written.isdigit() else f'"{written}"'


def switch() -> Kind:
    def read(value: object, is_text: bool) -> object:
        if is_text and isinstance(value, str):
            value = {"true": True, "false": False}[value.lower()]
        return checked(value, isinstance(value, bool))

    return Kind("true or false", read, lambda value: "true" if value else "false")


def mode(least: int) -> Kind:
    """File permissions in octal; the bits of `least` are required."""

    def read(value: object, is_text: bool) -> object:
        if isinstance(value, str):
            value = int(checked(value, re.fullmatch(r"(0o?)?[0-7]{3}", value)), 8)
        return checked(value, type(value) is int and 0 <= value <= 0o777 and value & least == least)

    expected = f'permissions in octal such as "0640", at least "{least:04o}"'
    return Kind(expected, read, lambda value: write_text(f"{value:04o}"))


def a_list(expected: str, read_item: Callable[[str], str]) -> Kind:
    """Texts, each parsed by `read_item`. In the environment and in a flag the list is written as in the file (`["a", "b"]`), or with commas
    only (`a, b`). Empty items are skipped."""

    def read(value: object, is_text: bool) -> tuple[str, ...]:
        items = list_in(value) if is_text and isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise ValueError
        return tuple(read_item(item.strip()) for item in items if item.strip())

    return Kind(expected, read, lambda items: "[" + ", ".join(map(write_text, items)) + "]")


def list_in(text: str) -> object:
    """Parse a TOML array (JSON arrays are valid ones), else split at commas: `[::1]:13700` begins like an array and is none."""
    if text.strip().startswith("["):
        try:
            table = tomllib.loads(f"items = {text.strip()}")
        except tomllib.TOMLDecodeError:
            pass
        else:
            return table["items"] if len(table) == 1 else None
    return text.split(",")


def names() -> Kind:
    """Host names without ports."""
    expected = 'a list of host names such as ["broker.example"]'
    return a_list(expected, lambda item: checked(item.lower(), HOST.fullmatch(item)))


def zmtp_listeners() -> Kind:
    """ZMTP listeners by name, or all of a dialect as `DIALECT.*`."""
    known = {name for name, listener in LISTENERS_BY_NAME.items() if listener.wire == ZMTP}
    known |= {name.partition(".")[0] + ".*" for name in known}
    expected = 'a list of listeners such as ["scale0.*", "pingpong.worker"]'
    return a_list(expected, lambda item: checked(item, item in known))


def networks() -> Kind:
    """IP addresses and networks."""
    expected = 'a list of addresses and networks such as ["127.0.0.0/8", "10.1.2.3"]'
    return a_list(expected, lambda item: checked(item, ip_network(item)))


def addresses(port: int) -> Kind:
    """Addresses of other programs, `host` or `host:port`; an empty list means none."""

    def read_item(item: str) -> str:
        host, colon, digits = item.rpartition(":")
        if not colon or item.endswith("]"):  # an IPv6 host is in brackets
            host, digits = item, str(port)
        return checked(f"{host}:{digits}", HOST.fullmatch(host) and digits.isdecimal() and 0 < int(digits) < 65536)

    return a_list(f'a list such as ["a.example:{port}", "b.example"]', read_item)


def secret_headers() -> Kind:
    """HTTP headers as `NAME=VALUE, …`; never shown, because they contain keys of other services."""

    def read(value: Any, is_text: bool) -> tuple[tuple[str, str], ...]:
        items = checked(value, isinstance(value, str)).split(",")
        pairs = [item.partition("=") for item in items if item.strip()]
        found = tuple((name.strip(), text.strip()) for name, _, text in pairs)
        has_names = all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name, _ in found)
        return checked(found, has_names and all(eq and text.isascii() and text.isprintable() for _, eq, text in pairs))

    return Kind('a secret text such as "api-key=…, tenant=…"', read, _write_secret, is_secret=True)


def directory() -> Kind:
    def read(value: Any, is_text: bool) -> Path:
        return Path(checked(value, isinstance(value, str | Path) and str(value))).expanduser()

    return Kind("a directory", read, lambda path: write_text(str(path)))


@dataclass(frozen=True, slots=True)
class Document:
    """A Scale0 configuration and its file; an edited file is a different value, so a reload notices it."""

    path: str
    tree: Node


def document() -> Kind:
    """A file whose suffix determines its notation. An error in its content raises BadDocument with the line, not just ValueError."""

    def read(value: object, is_text: bool) -> Document:
        if not isinstance(value, str | Path):
            raise ValueError
        if not str(value):
            return Document("", Node())
        path = Path(value).expanduser()
        config_type = {".json": b"JSON", ".xml": b"XML", ".zpl": b"ZFL", ".zfl": b"ZFL", ".cfg": b"ZFL"}[path.suffix]
        try:
            tree = notations.parse(config_type, path.read_bytes())
            documents.Documents(tree, 1.0)
        except OSError as error:
            raise BadDocument(0, f"the file cannot be read: {error.strerror}", str(path)) from error
        except BadDocument as error:
            raise BadDocument(error.line, error.problem, str(path)) from error
        return Document(str(value), tree)

    expected = "a file that ends in .json, .xml or .zpl, or an empty text"
    return Kind(expected, read, lambda document: write_text(document.path))
