"""Settings and the attributes they set: every one is set once, in its own unit, and none is forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from dragoman.core.settings import CATCH_UP_ALL, CoreSettings
from dragoman.dialects.ebus.settings import EbusSettings
from dragoman.dialects.emqp.settings import EmqpSettings
from dragoman.dialects.pingpong.commands import FORM_NAMES
from dragoman.dialects.pingpong.settings import PingpongSettings
from dragoman.dialects.rq.settings import RqSettings
from dragoman.dialects.scale0.settings import Scale0Settings
from dragoman.journal.settings import JournalSettings
from dragoman.runtime.config import Config, Flags, load
from dragoman.runtime.config.sections import all_settings
from dragoman.runtime.config.targets import Target, coded, nanoseconds, unchanged
from dragoman.runtime.settings import apply_settings, journal_settings

DEFAULTS: list[object] = [
    CoreSettings(),
    EbusSettings(),
    EmqpSettings(),
    PingpongSettings(),
    RqSettings(),
    Scale0Settings(),
    JournalSettings(directory=""),
]
# Shares of limits.memory_max, and what no operator chooses.
WITHOUT_SETTING = {
    CoreSettings: {"bodies_max", "large_bodies_max", "objects_max", "load_step_size", "messages_size_max"},
    JournalSettings: {"directory", "zero_fill", "read_whole_size"},
}


def attributes(settings: object) -> dict[str, object]:
    return {name: getattr(settings, name) for name in dir(settings) if not name.startswith("_")}


def named(settings: object) -> str:
    return type(settings).__name__


@pytest.mark.parametrize("settings", DEFAULTS, ids=named)
def test_every_attribute_has_one_setting(settings: object) -> None:
    targets = [declared.target for declared in all_settings().values() if declared.target is not None]
    found = Counter(target.attribute for target in targets if target.owner is type(settings))
    assert found == Counter(set(attributes(settings)) - WITHOUT_SETTING.get(type(settings), set()))


def test_every_target_is_of_a_known_settings_object() -> None:
    owners = {declared.target.owner for declared in all_settings().values() if declared.target is not None}
    assert owners == {type(settings) for settings in DEFAULTS}


@pytest.mark.parametrize("settings", DEFAULTS[:-1], ids=named)
def test_the_default_settings_change_no_attribute(settings: object) -> None:
    applied = type(settings)()
    apply_settings(Config(), applied)
    assert attributes(applied) == attributes(settings)
    assert [type(value) for value in attributes(applied).values()] == [
        type(value) for value in attributes(settings).values()
    ]


def test_the_default_settings_are_those_of_the_journal() -> None:
    assert journal_settings(Config(), "") == JournalSettings(directory="")


@pytest.mark.parametrize("make", [unchanged, nanoseconds])
def test_a_misspelt_target_fails_where_it_is_declared(make: Callable[[object, str], Target]) -> None:
    with pytest.raises(AttributeError):
        make(EmqpSettings(), "heartbeats_ns")
    with pytest.raises(AttributeError):
        coded(EmqpSettings(), "externl_scheduler", {})


def test_values_come_in_the_unit_of_their_attribute() -> None:
    given = (
        "queues.timeout_s=1.5",
        "schedules.catch_up=all",
        "limits.handshake_s=4",
        "pingpong.form=json",
        "pingpong.queue=jobs",
        "emqp.scheduler=external",
        "ebus.data=json",
        "journal.age_max_s=60",
    )
    config = load(flags=Flags(settings=given))
    core, emqp, ebus, pingpong, rq = CoreSettings(), EmqpSettings(), EbusSettings(), PingpongSettings(), RqSettings()
    for settings in (core, emqp, ebus, pingpong, rq):
        apply_settings(config, settings)
    assert (core.timeout_ns, core.catch_up) == (1_500_000_000, CATCH_UP_ALL)
    assert (pingpong.form, pingpong.queue) == (FORM_NAMES.index("json"), b"jobs")
    assert (emqp.external_scheduler, ebus.is_json) == (True, True)
    assert rq.greeting_ns == 4_000_000_000
    assert journal_settings(config, "").age_max_s == 60
