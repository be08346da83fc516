"""The command line. Each command imports its heavy dependencies itself, so that `dragoman --help` is instant."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `dragoman` program."""
    from dragoman.cli.root import run

    sys.exit(run(sys.argv[1:]))
