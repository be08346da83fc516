"""Settings: defaults < TOML file < environment < flags. Every error names the key, its source and what was expected.

Reading order: `kinds` (types of values), `targets` (the attribute a setting sets), `sections` (the settings), `sources` (where values come from),
`loading` (how they become a `Config`), `page` (how they are shown).
"""

from dragoman.runtime.config.listeners import Listener
from dragoman.runtime.config.loading import Changes, load, reloadable_changes
from dragoman.runtime.config.page import render_toml
from dragoman.runtime.config.sections import Config
from dragoman.runtime.config.sources import Flags

__all__ = ["Changes", "Config", "Flags", "Listener", "load", "reloadable_changes", "render_toml"]
