"""The short run of the damage trials; `make damage` has the long one."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from dragoman.journal.format import segment_name
from tests.damage.harm import KINDS, harm
from tests.damage.run import Trials, run, trials_of
from tests.damage.specimens import Journals, Specimen, load_specimens, make_specimens, save_specimens
from tests.damage.trial import try_one

TRIALS = 300
SEED = 4


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return trials_of(make_specimens(tmp_path_factory.mktemp("journals"), SEED))


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_nothing_forged_is_delivered_and_nothing_is_lost_without_a_word(trials: Trials, tmp_path: Path) -> None:
    outcomes, wrong = run(trials, range(SEED, SEED + TRIALS), processes=2)
    assert not wrong, "\n".join(map(str, wrong[:5]))
    assert set(outcomes) == {"as sound", "refused", "quarantined"}, "the damages have become too tame"


@pytest.mark.slow
def test_an_undamaged_journal_is_served_whole(trials: Trials) -> None:
    for sound in trials.sounds:
        assert sound.delivered, sound.specimen.name
        assert sound.quarantined, sound.specimen.name
        assert set(sound.delivered.values()) == {1}, "nothing is delivered twice"


def test_every_kind_of_damage_is_met() -> None:
    files = {segment_name(number): bytes([number]) * 9000 for number in range(1, 4)}
    words = {harm(files, b"another", Random(seed)).what.split(" in ")[0] for seed in range(500)}
    assert len(words) > len(KINDS)


def test_a_damage_knows_which_bytes_it_touched() -> None:
    files = {segment_name(number): Random(number).randbytes(9000) for number in range(1, 4)}
    for seed in range(300):
        harmed = harm(files, b"another", Random(seed))
        for name, content in files.items():
            changed = harmed.files.get(name, b"")
            differs = [at for at in range(len(content)) if at >= len(changed) or changed[at] != content[at]]
            assert all(harmed.touches(name, at, at + 1) for at in differs), harmed.what


@pytest.mark.slow
def test_the_judge_sees_a_body_that_was_changed(trials: Trials) -> None:
    """A broker that delivers what the disk says must not pass: here the sound journal is the one that lies."""
    sound = trials.sounds[0]
    lost, kept = sorted(sound.bodies)[0], sound.bodies.copy()
    sound.bodies.discard(lost)
    try:
        verdicts = [try_one([sound], trials.foreign, seed) for seed in range(5)]
    finally:
        sound.bodies |= kept
    assert any("never sent" in text for verdict in verdicts for text in verdict.wrong)


def test_kept_journals_are_read_back_as_they_were(tmp_path: Path) -> None:
    journals = Journals([Specimen("a b", {"x.seg": b"1"}, True), Specimen("c", {"y.seg": b"2"}, False)], b"foreign")
    save_specimens(journals, tmp_path)
    assert load_specimens(tmp_path) == journals
