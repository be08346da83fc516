"""Sources of values: a TOML file, the environment, the command line. Each becomes `key -> Given`.

    dragoman.toml   [journal]                     environment   DRAGOMAN_JOURNAL__SIZE_MAX=20GiB
                    size_max = "20GiB"            flag          --set journal.size_max=20GiB

The environment's separator is two underscores. With one, the variables that container platforms create for a service
called "dragoman-emqp" (DRAGOMAN_EMQP_PORT) would be taken for settings. Such a variable is ignored, but one that
only lacks the second underscore is an error, because it is clearly a mistyped setting.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman.errors import ConfigError
from dragoman.runtime.config.listeners import ALL_LISTENERS
from dragoman.runtime.config.sections import all_settings

PREFIX: Final = "DRAGOMAN_"


@dataclass(frozen=True, slots=True)
class Given:
    """A given value, not checked yet. `is_text`: its source can only provide text."""

    value: object
    source: str
    is_text: bool


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of `dragoman up` that set settings."""

    data: str | None = None
    durability: str | None = None
    listen: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()


def known_keys() -> list[str]:
    """Return every key that can be given, including listeners, in the order of the file."""
    keys = list(all_settings())
    return [keys[0], *(f"listen.{name}" for name in ALL_LISTENERS), *keys[1:]]


def secret_keys() -> set[str]:
    """Return the settings whose values are never shown."""
    return {key for key, declared in all_settings().items() if declared.kind.is_secret}


def environment_name(key: str) -> str:
    """Return the variable that sets `key`: `DRAGOMAN_LISTEN__EMQP_CLIENT` for `listen.emqp.client`."""
    section, _, rest = key.partition(".")
    return PREFIX + (f"{section}__{rest}" if rest else section).replace(".", "_").upper()


def from_file(path: Path) -> dict[str, Given]:
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except OSError as error:
        raise ConfigError("config", str(path), f"the file cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError("config", str(path), f"the file is not valid TOML: {error}") from error
    return {key: Given(value, f"{path}:{_line_of(text, key)}", is_text=False) for key, value in _flatten(table, "")}


def _flatten(table: dict[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _line_of(text: str, key: str) -> int:
    """Return the line that sets `key`, as well as possible without a parser that keeps positions: 1 when unsure."""
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        plain = re.sub(r"[\"'\s]", "", line)
        if plain.startswith("[") and "]" in plain:
            section = plain[1 : plain.index("]")] + "."
        elif section + plain.partition("=")[0] == key:
            return number
    return 1


def from_environment(environ: Mapping[str, str]) -> dict[str, Given]:
    by_name = {environment_name(key): key for key in known_keys()}
    found: dict[str, Given] = {}
    for name, value in environ.items():
        if not name.startswith(PREFIX):
            continue
        key = by_name.get(name)
        if key is None and "__" in name:
            key = name.removeprefix(PREFIX).lower().replace("__", ".")  # unknown: loading raises, with a suggestion
        if key is not None:
            found[key] = Given(value, f"environment variable {name}", is_text=True)
            continue
        for right_name, meant in by_name.items():
            if name == right_name.replace("__", "_"):
                raise ConfigError(meant, f"environment variable {name}", f"write {right_name}, with two underscores")
    return found


def from_flags(flags: Flags) -> dict[str, Given]:
    found: dict[str, Given] = {}
    for text in flags.settings:
        key, value = _split(text, "--set", "SECTION.KEY=VALUE")
        shown = f"{key}=…" if key in secret_keys() else text
        found[key] = Given(value, f"--set {shown}", is_text=True)
    if flags.data is not None:
        found["data"] = Given(flags.data, "--data", is_text=True)
    if flags.durability is not None:
        found["journal.durability"] = Given(flags.durability, "--durability", is_text=True)
    for text in flags.listen:
        name, value = _split(text, "--listen", "NAME=ADDRESS")
        found[f"listen.{name}"] = Given(value, f"--listen {text}", is_text=True)
    return found


def _split(text: str, flag: str, shape: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ConfigError(flag, f"{flag} {text}", f"expected {shape}")
    return name.strip(), value.strip()
