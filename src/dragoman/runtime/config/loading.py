"""Builds a `Config` from given values: the stronger source wins, each value is parsed by its kind, then the whole is validated."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import BindNotLoopback, ConfigError
from dragoman.runtime.config import listeners
from dragoman.runtime.config.dialects import DESCRIBED, declarations
from dragoman.runtime.config.kinds import Kind
from dragoman.runtime.config.listeners import HTTP, Listener
from dragoman.runtime.config.sections import SECTIONS, Config, all_settings
from dragoman.runtime.config.sources import Flags, Given, from_environment, from_file, from_flags, known_keys

NO_FLAGS = Flags()


def load(
    config_file: str | Path | None = None, environ: Mapping[str, str] | None = None, flags: Flags = NO_FLAGS
) -> Config:
    """Return the settings: defaults < `config_file` (or DRAGOMAN_CONFIG) < `environ` < `flags`; `ConfigError` if wrong."""
    environ = environ or {}
    path = config_file or environ.get("DRAGOMAN_CONFIG") or None
    given = from_file(Path(path)) if path else {}
    given |= from_environment(environ)
    given |= from_flags(flags)
    config = _build(given)
    _check_together(config)
    return config


def _build(given: Mapping[str, Given]) -> Config:
    declared = all_settings()
    listen = listeners.default_listeners()
    values: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    data = Config().data
    for key, what in given.items():
        section, _, name = key.partition(".")
        if section == "listen" and name in listeners.ALL_LISTENERS:
            listen[name] = _read(key, listeners.listener_kind(name), what)
        elif key == "data":
            data = _read(key, declared[key].kind, what)
        elif key in declared:
            values[section][name] = _read(key, declared[key].kind, what)
        else:
            raise ConfigError(key, what.source, _unknown(key))
    sections: dict[str, Any] = {section: SECTIONS[section](**values[section]) for section in SECTIONS}
    sources = {key: what.source for key, what in given.items()}
    return with_sections(Config(data=data, listen=listen, sources=sources), sections)


def _read(key: str, kind: Kind, what: Given) -> Any:
    try:
        return kind.read(what.value, what.is_text)
    except (ValueError, KeyError) as error:
        got = "" if kind.is_secret else f", got {_shown(what.value)}"
        raise ConfigError(key, what.source, f"expected {kind.expected}{got}") from error


def _shown(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _unknown(key: str) -> str:
    keys = known_keys()
    near = difflib.get_close_matches(key, keys, n=1, cutoff=0.6)
    if not near:
        # The other common mistake is the right name in the wrong section.
        near = [known for known in keys if known.rpartition(".")[2] == key.rpartition(".")[2]][:1]
    return f"there is no such setting; did you mean {near[0]}?" if near else "there is no such setting"


def _check_together(config: Config) -> None:
    """Check conditions that involve more than one value."""
    least, longest = config.queues.backoff_initial_s, config.queues.backoff_max_s
    if longest < least:
        problem = f"expected at least queues.backoff_initial_s ({least}), got {longest}"
        raise _invalid(config, problem, "queues.backoff_max_s", "queues.backoff_initial_s")
    if config.journal.size_max < 2 * config.journal.segment_size:
        problem = "expected room for two files of journal.segment_size: the one being written and the spare one"
        raise _invalid(config, problem, "journal.size_max", "journal.segment_size")
    for dialect, description in DESCRIBED.items():
        for declared in declarations(description):
            if declared.more_than:
                key, other_key = f"{dialect}.{declared.name}", f"{dialect}.{declared.more_than}"
                value, other = value_of(config, key), value_of(config, other_key)
                if value <= other:
                    raise _invalid(config, f"expected more than {other_key} ({other:g}), got {value:g}", key, other_key)
    if config.web.token and config.web.token == config.web.read_token:
        raise _invalid(config, "expected another text than web.token", "web.read_token")
    for listener in config.listen.values():
        if not listener.is_off and not listener.is_loopback:
            _check_reachable(config, listener)


def _check_reachable(config: Config, listener: Listener) -> None:
    """Check a listener that other machines can reach. The web page can change things, so its clients need a token, with or without
    `security.insecure`."""
    is_page = listener.name == HTTP
    if (config.web.token or config.web.read_token) if is_page else config.security.insecure:
        return
    problem = f"{listener.address} can be reached from other machines"
    if is_page:
        problem += "; bind to 127.0.0.1, or set web.token"
    else:
        problem += " and nobody is asked who they are; bind to 127.0.0.1, or allow it with security.insecure = true"
    key = f"listen.{listener.name}"
    raise BindNotLoopback(key, _source(config, key), problem)


def _invalid(config: Config, problem: str, *keys: str) -> ConfigError:
    return ConfigError(keys[0], _source(config, *keys), problem)


def _source(config: Config, *keys: str) -> str:
    """Return the source of the first of `keys` that was given."""
    return next((config.sources[key] for key in keys if key in config.sources), "defaults")


def section_of(config: Config, section: str) -> Any:
    return config.dialects[section] if section in config.dialects else getattr(config, section)


def with_sections(config: Config, sections: Mapping[str, Any]) -> Config:
    """The same settings with other sections, by their names."""
    dialects = {name: section for name, section in sections.items() if name in config.dialects}
    others = {name: section for name, section in sections.items() if name not in config.dialects}
    return dataclasses.replace(config, dialects={**config.dialects, **dialects}, **others)


def value_of(config: Config, key: str) -> Any:
    """Return the value of a setting by its full key (`journal.durability`, `listen.emqp.client`)."""
    section, _, name = key.partition(".")
    if section == "listen":
        return config.listen[name]
    return getattr(section_of(config, section), name) if name else section_of(config, section)


@dataclass(frozen=True, slots=True)
class Changes:
    """The result of a reload: `effective` has the new values of the `applied` keys and the old ones of `needs_restart`."""

    effective: Config
    applied: tuple[str, ...]
    needs_restart: tuple[str, ...]


def _compared(config: Config, key: str) -> Any:
    """Return the value to compare; giving a default address explicitly is not a change."""
    value = value_of(config, key)
    return value.address if isinstance(value, Listener) else value


def reloadable_changes(old: Config, new: Config) -> Changes:
    """Compare the running settings with newly loaded ones."""
    changed = [key for key in known_keys() if _compared(old, key) != _compared(new, key)]
    declared = all_settings()
    applied = tuple(key for key in changed if key in declared and declared[key].reloadable)
    sections: dict[str, dict[str, Any]] = {}
    for key in applied:
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = value_of(new, key)
    replaced: dict[str, Any] = {
        section: dataclasses.replace(section_of(old, section), **values) for section, values in sections.items()
    }
    sources = {key: source for key, source in old.sources.items() if key not in applied}
    sources |= {key: new.sources[key] for key in applied if key in new.sources}
    effective = with_sections(dataclasses.replace(old, sources=sources), replaced)
    return Changes(effective, applied, tuple(key for key in changed if key not in applied))
