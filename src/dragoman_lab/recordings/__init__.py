"""Recordings of network traffic, for tests: read them, and play their peers against a broker."""

from __future__ import annotations

from dragoman.cli.tap import Recorder
from dragoman_lab.recordings.captures import Entry, read
from dragoman_lab.recordings.likeness import Likeness
from dragoman_lab.recordings.player import Divergence, Player

__all__ = ["Divergence", "Entry", "Likeness", "Player", "Recorder", "read"]
