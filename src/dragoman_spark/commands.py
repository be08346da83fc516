"""The command that the pipeline adds to `dragoman`: name → function, help text, the command after which it is listed."""

from __future__ import annotations

from typing import Final

COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "pipeline": ("dragoman_spark.cli.command:pipeline", "Make tables and answers from the lake, on Spark.", "bench"),
}
