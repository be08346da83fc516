"""The short run of the siege; `make siege` has the long one, and compares how long asks take."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.siege.__main__ import RSS_BESIDE
from tests.siege.run import MB, Half, Outcome, run

SECONDS = 12.0
MEMORY_MAX = 128 * MB


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_under_all_floods_at_once_every_good_ask_is_answered_and_memory_is_bounded(tmp_path: Path) -> None:
    outcome = run(tmp_path, SECONDS, MEMORY_MAX)
    assert outcome.is_alive, str(outcome)
    assert outcome.lost == 0, str(outcome)
    assert outcome.probes_failed == [], str(outcome)
    assert outcome.rss_max <= MEMORY_MAX + RSS_BESIDE, str(outcome)
    assert outcome.under_attack.answered > 50, str(outcome)
    assert {"HTTP_NOT_SPOKEN", "LEGACY_GREETING_OFF"} <= set(outcome.refusals), str(outcome)


def test_the_report_tells_how_much_slower_asks_are_under_attack() -> None:
    under, beside = Half({"rq": [0.03] * 100}), Half({"rq": [0.01] * 100})
    outcome = Outcome(MEMORY_MAX, under_attack=under, beside_work=beside, attack_cores=[0.5])
    assert outcome.ratio == pytest.approx(3.0)
    assert "3.00" in str(outcome)


def test_an_ask_that_failed_counts_as_lost() -> None:
    half = Half()
    half.add({"rq": {"took_s": [0.1], "errors": ["Refused: JOURNAL_FULL"]}})
    assert half.answered == 1
    assert Outcome(MEMORY_MAX, under_attack=half).lost == 1
