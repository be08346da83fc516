"""`python -m dragoman.web`: the dashboard process that `dragoman up` starts; runtime/children/webpage describes the protocol between them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dragoman.web.process import run


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m dragoman.web", description="Serve the web page of a broker.")
    parser.add_argument("--data", required=True, type=Path, metavar="DIR", help="the broker's data directory")
    parser.add_argument("--fd", required=True, type=int, metavar="N", help="the listening socket, inherited")
    options = parser.parse_args(arguments)
    return run(options.data, options.fd)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
