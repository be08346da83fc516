"""How a setting is declared, and its target: the attribute of a settings object that the core, a dialect or the journal reads.

A setting that has a target takes its default from there: name, unit and default of the attribute are stated once, in its
class. `values_for` in `runtime/settings.py` copies values from a `Config` to the targets, at start and at a reload. A target
that does not exist raises when its section is imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, dataclass_transform, get_args, get_type_hints

from dragoman.model.units import SECOND_NS
from dragoman.runtime.config import kinds
from dragoman.runtime.config.kinds import Kind

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Target:
    """One attribute of `owner`. `default` is in the operator's unit; `convert` maps an operator's value to the attribute's."""

    owner: type
    attribute: str
    default: object
    convert: Callable[[Any], Any]


def unchanged(defaults: object, attribute: str) -> Target:
    return Target(type(defaults), attribute, getattr(defaults, attribute), lambda value: value)


def nanoseconds(defaults: object, attribute: str) -> Target:
    return Target(type(defaults), attribute, getattr(defaults, attribute) / SECOND_NS, ns)


def coded(defaults: object, attribute: str, codes: Mapping[str, int]) -> Target:
    """`codes`: the attribute's value for each value that an operator can write."""
    default = getattr(defaults, attribute)
    return Target(
        type(defaults), attribute, next(word for word, code in codes.items() if code == default), codes.__getitem__
    )


def ns(seconds: float) -> int:
    return int(seconds * SECOND_NS)


# The kind of a setting that declares none follows from its type; a Literal lists the allowed words.
BY_TYPE: Final = kinds.text()
KINDS: Final[dict[object, Kind]] = {int: kinds.integer(0), float: kinds.seconds(), bool: kinds.switch(), str: BY_TYPE}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a section. Without a target, the runtime reads it from the section."""

    about: str
    kind: Kind = BY_TYPE
    default: Any = None
    target: Target | None = None
    reloadable: bool = False

    def field(self) -> Any:
        return dataclasses.field(default=self.default, metadata={"setting": self})


setting: Final[Callable[..., Any]] = Setting  # `Any`, so that the field's own annotation is its type


@dataclass_transform(frozen_default=True)
def section(defaults: object = None, *, reloadable: bool = False) -> Callable[[type[T]], type[T]]:
    """Make a class of settings a frozen dataclass. A setting without default and target sets the attribute of `defaults` that has its name.
    `reloadable`: all settings of the section are."""

    def make(cls: type[T]) -> type[T]:
        for name, its_type in get_type_hints(cls).items():
            one: Setting = getattr(cls, name)
            if one.kind is BY_TYPE:
                one = replace(one, kind=KINDS.get(its_type) or kinds.one_of(*get_args(its_type)))
            target = one.target or (target_of(defaults, name) if one.default is None else None)
            if target is not None:
                one = replace(one, target=target, default=target.default)
            setattr(cls, name, replace(one, reloadable=reloadable or one.reloadable).field())
        return dataclass(frozen=True, slots=True)(cls)

    return make


def target_of(defaults: object, name: str) -> Target:
    """The attribute of this name, whose unit may differ from the operator's: seconds may be `_ns`, or a whole number."""
    if not name.endswith("_s"):
        return unchanged(defaults, name)
    if hasattr(defaults, name):
        return Target(type(defaults), name, float(getattr(defaults, name)), int)
    return nanoseconds(defaults, name[:-2] + "_ns")
