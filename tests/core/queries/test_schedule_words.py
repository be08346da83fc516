"""A schedule in plain words."""

from __future__ import annotations

import pytest

from dragoman.core.queries.schedule_words import job_text, when_text


@pytest.mark.parametrize(
    ("cron", "interval_s", "text"),
    [
        ("", 1.0, "Every second"),
        ("", 0.5, "Every 0.5 seconds"),
        ("", 60.0, "Every minute"),
        ("", 90.0, "Every 90 seconds"),
        ("", 120.0, "Every 2 minutes"),
        ("", 1_000_001.0, "Every 1000001 seconds"),
        ("", 1_234_567.25, "Every 1234567.25 seconds"),
        ("", 0.000_001, "Every 0.000001 seconds"),
        ("", 3600.0, "Every hour"),
        ("", 172800.0, "Every 2 days"),
        ("@hourly", 0.0, "At the start of every hour"),
    ],
)
def test_when_it_comes(cron: str, interval_s: float, text: str) -> None:
    assert when_text(cron, interval_s) == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('["run",{"path":"shop","callable":"bill","args":[7,"ä"],"kwargs":{}}]', 'shop:bill [7, "ä"]'),
        ('["run",{"path":"shop","callable":"bill"}]', "shop:bill"),
        ('["other",{"path":"shop","callable":"bill"}]', '["other",{"path":"shop","callable":"bill"}]'),
        ('["run",7]', '["run",7]'),
        ("no job", "no job"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_what_it_makes(body: str, text: str) -> None:
    assert job_text(body) == text
