"""The command line. Everything heavy is imported by the command that needs it: `dragoman --help` is instant."""

from __future__ import annotations

import sys


def main() -> None:
    """The `dragoman` program."""
    from dragoman.cli.root import run

    sys.exit(run(sys.argv[1:]))
