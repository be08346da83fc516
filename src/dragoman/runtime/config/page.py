"""Renders settings: a commented dragoman.toml (`dragoman config show`) and the reference page in Markdown.

A setting that was not given is commented out, so that the printed file has exactly the effect of the running configuration: a listener
on its default port is still switched off, not an error, if the port is in use.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from dragoman.runtime.config.kinds import write_text
from dragoman.runtime.config.listeners import ALL_LISTENERS, EXPECTED_ADDRESS
from dragoman.runtime.config.loading import value_of
from dragoman.runtime.config.sections import SECTIONS, Config, all_settings, settings_of
from dragoman.runtime.config.sources import environment_name, secret_keys

FILE_HEAD = """\
# dragoman.toml: every setting of the broker, with its default commented out.
# Weaker to stronger: defaults, this file, environment variables (DRAGOMAN_JOURNAL__DURABILITY=os), flags
# (--set journal.durability=os). `dragoman config show` prints this file with what is in force.
"""
LISTEN_ABOUT = (
    'Where each listener binds: "tcp://HOST:PORT", port 0 for a free one, or "off". A default port that is taken '
    "switches its listener off; one that is written here must be free."
)
PAGE_HEAD = """\
# Settings

Weaker to stronger: defaults, a TOML file (`--config FILE` or `DRAGOMAN_CONFIG`), environment variables, flags.
The broker runs without any of them. `dragoman config show` prints what is in force as a commented file.

| source | example |
|---|---|
| file | `[journal]` and below it `durability = "os"` |
| environment | `DRAGOMAN_JOURNAL__DURABILITY=os` (two underscores between section and key) |
| flags | `--set journal.durability=os`; short forms `--data DIR`, `--durability WORD`, `--listen NAME=ADDRESS` |

An unknown key or an impossible value ends the command with exit code 2 and a line that names the key, the place it came
from and what was expected (`CONFIG_INVALID`). An address that other machines can reach is refused
(`BIND_NOT_LOOPBACK`) until `security.insecure = true`.

SIGHUP reads the same sources again. Settings marked *reload* change at once; changes of others are reported and wait
for the next start.

This page is made from the code: `make docs` rewrites it.
"""


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


def render_markdown() -> str:
    """Return docs/reference/config.md."""
    return "\n".join([PAGE_HEAD, *_page_lines()]) + "\n"


def _page_lines() -> Iterator[str]:
    config, declared = Config(), all_settings()
    data = declared["data"]
    yield f"## `data`\n\nDefault `{data.kind.write(config.data)}`, variable `{environment_name('data')}`. {data.about}\n"
    yield f"## `[listen]`\n\n{LISTEN_ABOUT}\n\nExpected: {EXPECTED_ADDRESS}.\n"
    yield "| key | default | who connects | variable |\n|---|---|---|---|"
    for name, (address, about) in ALL_LISTENERS.items():
        yield f"| `{write_text(name)}` | `{address}` | {about} | `{environment_name('listen.' + name)}` |"
    for section, section_type in SECTIONS.items():
        yield f"\n## `[{section}]`\n\n{section_type.__doc__}\n"
        yield "| key | default | expected | meaning |\n|---|---|---|---|"
        for name, one in settings_of(section_type).items():
            default = one.kind.write(value_of(config, f"{section}.{name}"))
            meaning = one.about + (" *reload*" if one.reloadable else "")
            yield f"| `{name}` | `{default}` | {one.kind.expected} | {meaning} |"
