"""The commands that the lab adds to `dragoman`: name → function, help text, the command after which it is listed."""

from __future__ import annotations

from typing import Final

COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "export-test": ("dragoman_lab.replay.command:export_test", "Write a test that replays what happened.", "explain"),
    "replay-peer": (
        "dragoman_lab.recordings.command:replay_peer",
        "Play a recorded peer against a broker, up to the first divergence.",
        "tap",
    ),
    "generate": ("dragoman_lab.generate.command:generate", "Write a lake of synthetic facts.", "dismiss"),
}
