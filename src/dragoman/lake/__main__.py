"""`python -m dragoman.lake`: the sealer that `dragoman up` starts; lake/process documents the protocol between them."""

from __future__ import annotations

import argparse
import sys

from dragoman import limits, log_lines
from dragoman.lake.process import Options, run
from dragoman.lake.writer import BODIES


def octal(text: str) -> int:
    return int(text, 8)


def options(arguments: list[str]) -> Options:
    parser = argparse.ArgumentParser(prog="python -m dragoman.lake", description="Seal a journal into a lake.")
    parser.add_argument("--journal", required=True, metavar="DIR", help="the journal's directory")
    parser.add_argument("--root", required=True, metavar="ROOT", help="a directory, or an address pyarrow knows")
    parser.add_argument("--bodies", choices=list(BODIES), default="hash", help="how much of a body goes along")
    parser.add_argument("--interval-s", type=float, default=limits.LAKE_INTERVAL_S, metavar="S")
    parser.add_argument("--rows-max", type=int, default=limits.LAKE_FILE_ROWS, metavar="N")
    parser.add_argument("--incoming-keep-s", type=float, default=limits.LAKE_INCOMING_KEEP_S, metavar="S")
    parser.add_argument("--file-mode", type=octal, default=limits.LAKE_FILE_MODE, metavar="OCTAL")
    parser.add_argument("--directory-mode", type=octal, default=limits.LAKE_DIRECTORY_MODE, metavar="OCTAL")
    return Options(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    log_lines.configure("WARNING", "%(asctime)s %(levelname)s sealer: %(message)s")
    sys.exit(run(options(sys.argv[1:])))
