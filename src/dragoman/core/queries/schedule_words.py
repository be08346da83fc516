"""A schedule's times and job as readable text."""

from __future__ import annotations

import json

from cronsim import CronSim

from dragoman.core.state.schedule import EPOCH, cron_fields


def when_text(cron: str, interval_s: float) -> str:
    """`Every 5 minutes`, or a cron expression explained in words."""
    if not cron:
        return "Every " + interval_text(interval_s)
    explained: str = CronSim(cron_fields(cron), EPOCH).explain()
    return explained


def interval_text(seconds: float) -> str:
    for unit_s, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit_s and seconds % unit_s == 0:
            number = int(seconds // unit_s)
            return unit if number == 1 else f"{number} {unit}s"
    return "second" if seconds == 1 else f"{seconds:.9f}".rstrip("0").rstrip(".") + " seconds"


def job_text(body: str) -> str:
    """`module:function arguments` of a job in EventMQ's format; any other body unchanged."""
    try:
        word, run = json.loads(body)
        arguments = [json.dumps(run[part], ensure_ascii=False) for part in ("args", "kwargs") if run.get(part)]
        return " ".join([f"{run['path']}:{run['callable']}", *arguments]) if word == "run" else body
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return body
