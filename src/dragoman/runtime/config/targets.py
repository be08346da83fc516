"""The target of a setting: the attribute of a settings object that the core, a dialect or the journal reads.

A declaration that names a target takes its default from there: name, unit and default of the attribute are stated once, in its
class. `values_for` in `runtime/settings.py` copies values from a `Config` to the targets, at start and at a reload. A target
that does not exist raises when its section is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.model.units import SECOND_NS


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


def whole_seconds(defaults: object, attribute: str) -> Target:
    return Target(type(defaults), attribute, float(getattr(defaults, attribute)), int)


def encoded(defaults: object, attribute: str) -> Target:
    return Target(type(defaults), attribute, getattr(defaults, attribute).decode(), str.encode)


def coded(defaults: object, attribute: str, codes: Mapping[str, int]) -> Target:
    """`codes`: the attribute's value for each value that an operator can write."""
    default = getattr(defaults, attribute)
    return Target(
        type(defaults), attribute, next(word for word, code in codes.items() if code == default), codes.__getitem__
    )


def ns(seconds: float) -> int:
    return int(seconds * SECOND_NS)
