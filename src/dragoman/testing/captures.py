"""Recordings of conversations, for tests: read them, write them, and play their peers against a broker."""

from __future__ import annotations

from dragoman.cli.lab.captures import Entry, Recorder, read
from dragoman.cli.lab.likeness import Likeness
from dragoman.cli.lab.player import Divergence, Player

__all__ = ["Divergence", "Entry", "Likeness", "Player", "Recorder", "read"]
