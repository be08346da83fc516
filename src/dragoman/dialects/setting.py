"""How a dialect declares the settings that an operator may change: its module `settings` has `DEFAULTS`, an object with all their values,
and `SETTINGS`, a declaration of each.

The type of a value is that of its default: a bool, a whole number, or bytes, which are written as a name. `_ns` attributes are written in
seconds, under the same name with `_s`.
"""

from __future__ import annotations

from typing import Final, final

# Kinds that the type of the default does not tell.
SIZE: Final = "size"  # a number of bytes, or a text such as "64MiB"
PLACES: Final = "places"  # a list of HOST:PORT; `least` is the default port
DOCUMENT: Final = "document"  # the file of a Scale0 configuration


@final
class DialectSetting:
    """One setting. `name` has its unit, as the operator writes it."""

    def __init__(
        self,
        name: str,
        about: str,
        reloadable: bool = True,
        attribute: str = "",
        kind: str = "",
        least: int = 0,
        most: int | None = None,
        above_zero: bool = False,
        more_than: str = "",
        codes: dict[str, int] | None = None,
    ) -> None:
        self.name = name
        self.about = about
        self.reloadable = reloadable  # it takes effect without a restart
        self.attribute = attribute or (name[:-2] + "_ns" if name.endswith("_s") else name)  # of `DEFAULTS`
        self.kind = kind
        self.least = least
        self.most = most
        self.above_zero = above_zero  # of seconds
        self.more_than = more_than  # another setting of this dialect, whose value it must exceed
        self.codes = codes  # the attribute's value for each word that an operator can write
