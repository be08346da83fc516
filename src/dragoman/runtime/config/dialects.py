"""The section of settings of each dialect, made from the declarations in its folder (dialects/setting.py)."""

from __future__ import annotations

import dataclasses
import importlib
from operator import attrgetter
from typing import Any

from dragoman.dialects.description import DialectDescription
from dragoman.dialects.registry import DESCRIPTIONS
from dragoman.dialects.setting import DOCUMENT, PLACES, SIZE, DialectSetting
from dragoman.runtime.config import kinds
from dragoman.runtime.config.kinds import Document, Kind
from dragoman.runtime.config.targets import Setting, Target, coded, nanoseconds, unchanged


def declarations(description: DialectDescription) -> list[DialectSetting]:
    settings: list[DialectSetting] = _module(description).SETTINGS
    return settings


def _module(description: DialectDescription) -> Any:
    return importlib.import_module(description.package + ".settings")


def section_of(description: DialectDescription) -> type:
    """A frozen dataclass with a field for each setting."""
    defaults = _module(description).DEFAULTS
    fields = []
    for declared in declarations(description):
        target, kind = _target_and_kind(declared, defaults)
        setting = Setting(declared.about, kind, target.default, target, declared.reloadable)
        fields.append((declared.name, Any, setting.field()))
    section = dataclasses.make_dataclass(f"{description.name}Config", fields, frozen=True, slots=True)
    section.__doc__ = description.settings_about
    return section


def _target_and_kind(declared: DialectSetting, defaults: object) -> tuple[Target, Kind]:
    attribute = declared.attribute
    default = getattr(defaults, attribute)
    if declared.codes is not None:
        return coded(defaults, attribute, declared.codes), kinds.one_of(*declared.codes)
    if declared.kind == DOCUMENT:
        return Target(type(defaults), attribute, Document("", default), attrgetter("tree")), kinds.document()
    if declared.kind == PLACES:
        return unchanged(defaults, attribute), kinds.addresses(declared.least)
    if declared.kind == SIZE:
        return unchanged(defaults, attribute), kinds.size(declared.least)
    if attribute.endswith("_ns"):
        return nanoseconds(defaults, attribute), kinds.seconds(more_than_zero=declared.above_zero)
    if isinstance(default, bool):
        return unchanged(defaults, attribute), kinds.switch()
    if isinstance(default, bytes):
        return Target(type(defaults), attribute, default.decode(), str.encode), kinds.name()
    return unchanged(defaults, attribute), kinds.integer(declared.least, declared.most)


DESCRIBED = {description.name: description for description in DESCRIPTIONS if description.settings_about}
DIALECT_SECTIONS = {name: section_of(description) for name, description in DESCRIBED.items()}
