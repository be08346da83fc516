"""Renders settings as a commented dragoman.toml: `dragoman config show`.

A setting that was not given is commented out, so that the printed file has exactly the effect of the running configuration: a listener
on its default port is still switched off, not an error, if the port is in use.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from dragoman.runtime.config.kinds import write_text
from dragoman.runtime.config.listeners import ALL_LISTENERS
from dragoman.runtime.config.loading import value_of
from dragoman.runtime.config.sections import SECTIONS, Config, all_settings, settings_of
from dragoman.runtime.config.sources import secret_keys

FILE_HEAD = """\
# dragoman.toml: every setting of the broker, with its default commented out.
# Weaker to stronger: defaults, this file, environment variables (DRAGOMAN_JOURNAL__DURABILITY=os), flags
# (--set journal.durability=os). `dragoman config show` prints this file with what is in force.
"""
LISTEN_ABOUT = (
    'Where each listener binds: "tcp://HOST:PORT", port 0 for a free one, or "off". A default port that is taken '
    "switches its listener off; one that is written here must be free."
)


def render_toml(config: Config) -> str:
    """Return `config` as a commented file; reading it back gives an equal `Config`."""
    return "\n".join([FILE_HEAD, *_file_lines(config)]) + "\n"


def _file_lines(config: Config) -> Iterator[str]:
    declared = all_settings()
    yield from _comment(f"{declared['data'].about}")
    yield _assignment(config, "data", "data", declared["data"].kind.write(config.data))
    yield "\n[listen]"
    yield from _comment(LISTEN_ABOUT)
    for name, (_, about) in ALL_LISTENERS.items():
        yield from _comment(f"{name}: {about}.")
        yield _assignment(config, f"listen.{name}", f'"{name}"', write_text(config.listen[name].address))
    for section, section_type in SECTIONS.items():
        yield f"\n[{section}]"
        yield from _comment(str(section_type.__doc__))
        for name, one in settings_of(section_type).items():
            key = f"{section}.{name}"
            yield ""
            yield from _comment(one.about)
            yield from _comment(f"({one.kind.expected})")
            yield _assignment(config, key, name, one.kind.write(value_of(config, key)))


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, 116)]


def _assignment(config: Config, key: str, name: str, value: str) -> str:
    is_given = key in config.sources and key not in secret_keys()
    return f"{name} = {value}" if is_given else f"# {name} = {value}"
