"""The pages, by the first segment of their path."""

from __future__ import annotations

from typing import Final

from dragoman.web.dashboard import Page
from dragoman.web.pages import message, overview, quarantine, queues, search, workers

PAGES: Final[dict[str, Page]] = {
    "": Page("overview.html", "Overview", "overview", overview.make),
    "queues": Page("queues.html", "Queues", "queues", queues.make),
    "queue": Page("queue.html", "Queue", "queues", queues.make_one),
    "workers": Page("workers.html", "Workers", "workers", workers.make),
    "worker": Page("worker.html", "Worker", "workers", workers.make_one),
    "message": Page("message.html", "Message", "search", message.make, every_beats=2),
    "quarantine": Page("quarantine.html", "Quarantine", "quarantine", quarantine.make),
    "schedules": Page("schedules.html", "Schedules", "schedules", overview.make_schedules),
    "crossings": Page("crossings.html", "Crossings", "crossings", overview.make_crossings),
    "search": Page("search.html", "Search", "search", search.make, every_beats=2, make_once=search.once),
}
