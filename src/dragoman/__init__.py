"""dragoman: a message broker for five broker/worker protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.client.app import App as App

__all__ = ["App"]


def __getattr__(name: str) -> Any:
    # Imported on first use: the broker and the command line import this package and need no SDK.
    if name == "App":
        from dragoman.client.app import App

        return App
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
