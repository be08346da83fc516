"""The version of dragoman, and whether its inner packages are compiled or plain Python."""

from __future__ import annotations

from typing import Final

from dragoman import limits

VERSION: Final = "0.1.0"


def build_flavour() -> str:
    """Return `compiled` or `pure`. One module is enough to check: the packages are compiled together (see setup.py)."""
    return "pure" if (limits.__file__ or "").endswith((".py", ".pyc")) else "compiled"


def version_line() -> str:
    """Return what `dragoman --version` prints."""
    return f"dragoman {VERSION} ({build_flavour()})"
