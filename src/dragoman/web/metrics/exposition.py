"""Prometheus's two text formats: 0.0.4, and OpenMetrics for clients that prefer it.

A family is written once for both; the formats differ in the header names of counters and infos, and in the last line. The rules are those
of prometheus.io/docs/instrumenting/exposition_formats and of the OpenMetrics specification; the tests parse both with prometheus_client.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from dragoman.model.buckets import OCTAVE_SIZE, bucket_begin_ns, bucket_middle_ns
from dragoman.model.units import SECOND_NS

Kind = Literal["counter", "gauge", "histogram", "info"]
Labels = Mapping[str, str]

TEXT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# The suffix of every sample of a kind; the older format has it in the header, too.
SUFFIXES: Final = {"counter": "_total", "info": "_info"}
NO_LABELS: Final[Labels] = {}
# Upper bounds are powers of two of a microsecond, from 256 µs to 72 minutes: precision beyond these ends is not needed.
FIRST_OCTAVE, LAST_OCTAVE = 8, 32
# Every bound for the broker, every other one for each queue: a queue has two histograms, and there may be hundreds of queues.
FINE: Final = range(FIRST_OCTAVE, LAST_OCTAVE + 1)
COARSE: Final = range(FIRST_OCTAVE, LAST_OCTAVE + 1, 2)

Counts = dict[int, int]


@dataclass(slots=True)
class Family:
    """One metric with all its series."""

    name: str
    kind: Kind
    about: str
    lines: list[str] = field(default_factory=list)

    def add(self, value: float, labels: Labels = NO_LABELS) -> None:
        self.lines.append(f"{self.name}{SUFFIXES.get(self.kind, '')}{_braced(labels)} {value!r}")

    def add_histogram(self, buckets: Iterable[tuple[float, int]], total: float, labels: Labels = NO_LABELS) -> None:
        """Add a histogram: cumulative counts by upper bound, the last of which is infinite, and the sum of all observations."""
        count = 0
        for bound, count in buckets:
            shown = "+Inf" if math.isinf(bound) else repr(bound)
            self.lines.append(f"{self.name}_bucket{_braced({**labels, 'le': shown})} {count}")
        self.lines.append(f"{self.name}_sum{_braced(labels)} {total!r}")
        self.lines.append(f"{self.name}_count{_braced(labels)} {count}")


def write(families: Iterable[Family], is_openmetrics: bool) -> str:
    out: list[str] = []
    for family in families:
        if not family.lines:
            continue
        name, kind = family.name, family.kind
        if not is_openmetrics:
            name += SUFFIXES.get(kind, "")
            kind = "gauge" if kind == "info" else kind
        out.append(f"# HELP {name} {family.about}")
        out.append(f"# TYPE {name} {kind}")
        out += family.lines
    if is_openmetrics:
        out.append("# EOF")
    return "\n".join(out) + "\n"


def wants_openmetrics(accept: str) -> bool:
    """Whether a client prefers OpenMetrics to plain text."""
    return _quality(accept, "application/openmetrics-text") > max(_quality(accept, "text/plain"), 0.0)


def _quality(accept: str, wanted: str) -> float:
    best = 0.0
    for item in accept.split(","):
        kind, *parameters = [part.strip().lower() for part in item.split(";")]
        if kind == wanted:
            quality = next((text[2:] for text in parameters if text.startswith("q=")), "1")
            best = max(best, float(quality) if quality.replace(".", "", 1).isdecimal() else 0.0)
    return best


def _braced(labels: Labels) -> str:
    if not labels:
        return ""
    escaped = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
    return "{" + ",".join(f'{name}="{value.translate(escaped)}"' for name, value in labels.items()) + "}"


def cumulative(counts: Counts, octaves: Iterable[int]) -> Iterator[tuple[float, int]]:
    """A histogram of the broker's (model/buckets: 8 buckets per doubling) in Prometheus's form: upper bounds in seconds, each with the count of
    all shorter durations."""
    for octave in octaves:
        end = octave * OCTAVE_SIZE
        yield bucket_begin_ns(end) / SECOND_NS, sum(count for bucket, count in counts.items() if bucket < end)
    yield math.inf, sum(counts.values())


def sum_s(counts: Counts) -> float:
    """The sum of all durations, each taken as the middle of its bucket: at most a sixteenth off."""
    return sum(count * bucket_middle_ns(bucket) for bucket, count in counts.items()) / SECOND_NS
