"""Copies values of a `Config` to the settings objects of the core, the dialects and the journal: each setting to its declared target."""

from __future__ import annotations

from typing import Any

from dragoman.journal.settings import JournalSettings
from dragoman.runtime.config import Config
from dragoman.runtime.config.listeners import LISTENERS
from dragoman.runtime.config.loading import value_of
from dragoman.runtime.config.sections import all_settings


def values_for(config: Config, owner: type) -> dict[str, Any]:
    """The attributes of `owner` that settings declare as their targets, with values in its units."""
    targets = {key: declared.target for key, declared in all_settings().items()}
    return {
        target.attribute: target.convert(value_of(config, key))
        for key, target in targets.items()
        if target is not None and target.owner is owner
    }


def apply_settings(config: Config, settings: object) -> None:
    """Assign them in place. Also used at a reload: the owner reads `settings` at each decision."""
    for attribute, value in values_for(config, type(settings)).items():
        setattr(settings, attribute, value)


def journal_settings(config: Config, directory: str) -> JournalSettings:
    return JournalSettings(directory, **values_for(config, JournalSettings))


def legacy_listeners(config: Config) -> set[str]:
    """The listeners that accept ZMTP 1.0, each by its full name."""
    allowed = config.security.legacy_greetings
    return {name for name in LISTENERS if name in allowed or name.partition(".")[0] + ".*" in allowed}
