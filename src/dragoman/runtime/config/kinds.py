"""Types of setting values: each kind describes what it expects, parses a value and writes it as TOML.

A value from the environment or a flag is always text. One from a TOML file has a type, so a number in quotes is an
error there. Only sizes and addresses are text in a file, too.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from dragoman.dialects.description import ZMTP
from dragoman.dialects.registry import LISTENERS_BY_NAME
from dragoman.dialects.scale0.configuration import documents, notations
from dragoman.dialects.scale0.configuration.tree import Node
from dragoman.errors import BadDocument
from dragoman.runtime.config.targets import Target

UNITS: Final = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
HOST: Final = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
BINARY_UNITS: Final = {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}


@dataclass(frozen=True, slots=True)
class Kind:
    """How one setting is parsed (raises `ValueError` if invalid) and written."""

    expected: str
    read: Callable[[object, bool], Any]
    write: Callable[[Any], str]
    is_secret: bool = False  # never shown


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as its section declares it."""

    kind: Kind
    about: str
    reloadable: bool
    target: Target | None  # None: the runtime reads it from the section


def setting(default: object, kind: Kind, about: str, *, reloadable: bool = False) -> Any:
    """Declare a field of a section. `default`: its value, or the target that has it. Returns `Any`, so that the field's own annotation is its
    type."""
    target = default if isinstance(default, Target) else None
    declared = Setting(kind, about, reloadable, target)
    return dataclasses.field(default=default if target is None else target.default, metadata={"setting": declared})


def integer(least: int, most: int | None = None) -> Kind:
    bounds = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"

    def read(value: object, is_text: bool) -> int:
        number = int(value.replace("_", "")) if is_text and isinstance(value, str) else value
        if type(number) is not int or number < least or (most is not None and number > most):
            raise ValueError
        return number

    return Kind(bounds, read, lambda number: f"{number:_}")


def seconds(least: float = 0.0, *, more_than_zero: bool = False) -> Kind:
    def read(value: object, is_text: bool) -> float:
        number = float(value) if is_text and isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ValueError
        if not least <= number < 10**10 or (more_than_zero and number == 0):
            raise ValueError
        return float(number)

    text = "a number of seconds greater than 0" if more_than_zero else f"a number of seconds, at least {least:g}"
    return Kind(text, read, lambda number: f"{number:g}" if number < 10**6 else repr(number))


def size(least: int = 1) -> Kind:
    def read(value: object, is_text: bool) -> int:
        if isinstance(value, str):
            match = re.fullmatch(r"(\d[\d_]*)\s*([A-Za-z]*)", value.strip())
            if match is None:
                raise ValueError
            value = int(match[1].replace("_", "")) * (UNITS | BINARY_UNITS)[match[2]]
        if type(value) is not int or value < least:
            raise ValueError
        return value

    return Kind(f'a size such as "64MiB" or a number of bytes, at least {size_text(least)}', read, _write_size)


def size_or_zero(least: int) -> Kind:
    """A size, or 0 to let the program choose."""
    plain = size(0)

    def read(value: object, is_text: bool) -> int:
        found: int = plain.read(value, is_text)
        if 0 < found < least:
            raise ValueError
        return found

    return Kind(f'0, or a size such as "1GiB", at least {size_text(least)}', read, _write_size)


def size_text(size_bytes: int) -> str:
    """Return a size as an operator would write it: `64MiB`, or plain bytes when no unit divides it."""
    for unit, scale in BINARY_UNITS.items():
        if size_bytes and size_bytes % scale == 0:
            return f"{size_bytes // scale}{unit}"
    return str(size_bytes)


def _write_size(size_bytes: int) -> str:
    text = size_text(size_bytes)
    return text if text.isdigit() else f'"{text}"'


def one_of(*words: str) -> Kind:
    def read(value: object, is_text: bool) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    return Kind("one of " + ", ".join(f'"{word}"' for word in words), read, write_text)


def switch() -> Kind:
    def read(value: object, is_text: bool) -> bool:
        if is_text and isinstance(value, str):
            value = {"true": True, "false": False}[value.lower()]
        if not isinstance(value, bool):
            raise ValueError
        return value

    return Kind("true or false", read, lambda value: "true" if value else "false")


def mode(least: int) -> Kind:
    """File permissions in octal; the bits of `least` are required."""

    def read(value: object, is_text: bool) -> int:
        number = value
        if isinstance(value, str):
            number = int(value, 8) if re.fullmatch(r"(0o?)?[0-7]{3}", value) else -1
        if type(number) is not int or not 0 <= number <= 0o777 or number & least != least:
            raise ValueError
        return number

    return Kind(
        f'permissions in octal such as "0640", at least "{least:04o}"', read, lambda value: write_text(f"{value:04o}")
    )


def name() -> Kind:
    def read(value: object, is_text: bool) -> str:
        if not isinstance(value, str) or not value or not value.isprintable():
            raise ValueError
        return value

    return Kind("a name, not empty", read, write_text)


def text() -> Kind:
    def read(value: object, is_text: bool) -> str:
        if not isinstance(value, str) or not (value.isprintable() or not value):
            raise ValueError
        return value

    return Kind("a text", read, write_text)


def secret(least: int) -> Kind:
    """A text of at least `least` characters, or empty for none. It is never shown, neither as a setting nor in an error."""

    def read(value: object, is_text: bool) -> str:
        if not isinstance(value, str) or (value and (len(value) < least or not value.isprintable())):
            raise ValueError
        return value

    return Kind(
        f"a secret text of at least {least} characters, or an empty one",
        read,
        lambda value: write_text("(set, not shown)" if value else ""),
        is_secret=True,
    )


def a_list(expected: str, read_item: Callable[[str], str]) -> Kind:
    """Texts, each parsed by `read_item`. In the environment and in a flag the list is written as in the file (`["a", "b"]`), or with commas
    only (`a, b`). Empty items are skipped."""

    def read(value: object, is_text: bool) -> tuple[str, ...]:
        items = list_in(value) if is_text and isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise ValueError
        return tuple(read_item(item.strip()) for item in items if item.strip())

    return Kind(expected, read, lambda found: "[" + ", ".join(map(write_text, found)) + "]")


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

    def read_item(item: str) -> str:
        if not HOST.fullmatch(item):
            raise ValueError
        return item.lower()

    return a_list('a list of host names such as ["broker.example"]', read_item)


def zmtp_listeners() -> Kind:
    """ZMTP listeners by name, or all of a dialect as `DIALECT.*`."""
    known = {name for name, listener in LISTENERS_BY_NAME.items() if listener.wire == ZMTP}
    known |= {name.partition(".")[0] + ".*" for name in known}

    def read_item(item: str) -> str:
        if item not in known:
            raise ValueError
        return item

    return a_list('a list of listeners such as ["scale0.*", "pingpong.worker"]', read_item)


def networks() -> Kind:
    """IP addresses and networks; in the environment or a flag, commas separate them."""

    def read(value: object, is_text: bool) -> tuple[str, ...]:
        items = value
        if is_text and isinstance(value, str):
            items = json.loads(value) if value.strip().startswith("[") else value.split(",")
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise ValueError
        found = tuple(item.strip() for item in items if item.strip())
        for item in found:
            ip_network(item)
        return found

    return Kind(
        'a list of addresses and networks such as ["127.0.0.0/8", "10.1.2.3"]',
        read,
        lambda found: "[" + ", ".join(write_text(item) for item in found) + "]",
    )


def ratio() -> Kind:
    def read(value: object, is_text: bool) -> float:
        number = float(value) if is_text and isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
            raise ValueError
        return float(number)

    return Kind("a number from 0 to 1", read, lambda number: f"{number:g}")


def web_address() -> Kind:
    """A URL to which the broker sends requests; user name and password are not allowed in it."""

    def read(value: object, is_text: bool) -> str:
        if not isinstance(value, str) or not re.fullmatch(
            r"[!-~]*", value
        ):  # a non-ASCII host name is written as xn--…
            raise ValueError
        parts = urlsplit(value)
        has_port = parts.port is None or parts.port > 0  # reading `port` raises if it is not a number
        if value and not (parts.scheme in ("http", "https") and parts.hostname and has_port):
            raise ValueError
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError
        return value

    return Kind('an address such as "http://127.0.0.1:4318", or an empty text', read, write_text)


def secret_headers() -> Kind:
    """HTTP headers as `NAME=VALUE, …`; never shown, because they contain keys of other services."""

    def read(value: object, is_text: bool) -> tuple[tuple[str, str], ...]:
        if not isinstance(value, str):
            raise ValueError
        pairs = [item.partition("=") for item in value.split(",") if item.strip()]
        found = tuple((name.strip(), text.strip()) for name, _, text in pairs)
        if not all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name, _ in found):
            raise ValueError
        if not all(equals and text.isascii() and text.isprintable() for _, equals, text in pairs):
            raise ValueError
        return found

    return Kind(
        'a secret text such as "api-key=…, tenant=…"',
        read,
        lambda found: write_text("(set, not shown)" if found else ""),
        is_secret=True,
    )


def places(port: int) -> Kind:
    """Addresses of other programs, `host` or `host:port`; an empty list means none."""
    return a_list(f'a list such as ["a.example:{port}", "b.example"]', lambda item: place(item, port))


def place(text: str, port: int) -> str:
    """`host:port`, with the default port if it is left out; an IPv6 host is in brackets."""
    host, colon, digits = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, digits = text, str(port)
    if not HOST.fullmatch(host) or not digits.isdecimal() or not 0 < int(digits) < 65536:
        raise ValueError
    return f"{host}:{digits}"


def timezone() -> Kind:
    def read(value: object, is_text: bool) -> str:
        if not isinstance(value, str) or not value:
            raise ValueError
        try:
            return ZoneInfo(value).key
        except OSError as error:  # a directory of the zone database, such as "Europe"
            raise ValueError from error

    return Kind('a time zone such as "UTC" or "Europe/Prague"', read, write_text)


def directory() -> Kind:
    def read(value: object, is_text: bool) -> Path:
        if not isinstance(value, str | Path) or not str(value):
            raise ValueError
        return Path(value).expanduser()

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

    return Kind(
        "a file that ends in .json, .xml or .zpl, or an empty text", read, lambda document: write_text(document.path)
    )


def write_text(text: str) -> str:
    """Return `text` as a TOML basic string (JSON's escapes are a subset of TOML's)."""
    return json.dumps(text, ensure_ascii=False)
