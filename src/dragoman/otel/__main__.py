"""`python -m dragoman.otel`: the exporter that `dragoman up` starts; otel/process documents the protocol between them."""

from __future__ import annotations

import argparse
import sys

from dragoman import log_lines
from dragoman.otel.process import Options, run


def options(arguments: list[str]) -> Options:
    parser = argparse.ArgumentParser(
        prog="python -m dragoman.otel", description="Tell a collector of a journal's traces."
    )
    parser.add_argument("--data", required=True, metavar="DIR", help="the broker's data directory")
    parser.add_argument("--endpoint", required=True, metavar="URL", help="an OTLP/HTTP collector, without /v1/traces")
    parser.add_argument("--service-name", required=True, metavar="NAME")
    parser.add_argument("--sample-ratio", required=True, type=float, metavar="R")
    parser.add_argument("--interval-s", required=True, type=float, metavar="S")
    parser.add_argument("--spans-max", required=True, type=int, metavar="N")
    parser.add_argument("--open-max", required=True, type=int, metavar="N")
    parser.add_argument("--compression", required=True, choices=["none", "gzip"])
    return Options(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    log_lines.configure("WARNING", "%(asctime)s %(levelname)s exporter: %(message)s")
    sys.exit(run(options(sys.argv[1:])))
