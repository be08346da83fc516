"""Settings that are lists: the form that the reference page shows is understood wherever a setting can be given."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.runtime.config import Flags, load
from dragoman.runtime.config.loading import value_of
from dragoman.runtime.config.sections import all_settings

UPSTREAMS = [
    ('["h:1"]', ("h:1",)),
    ('["a.example:13701", "b.example"]', ("a.example:13701", "b.example:13700")),
    ("['a', 'b',]", ("a:13700", "b:13700")),
    ("a:1,b", ("a:1", "b:13700")),
    (" a:1 , b:2 ", ("a:1", "b:2")),
    ("a", ("a:13700",)),
    ("[]", ()),
    ("[ ]", ()),
    ("", ()),
    ("[::1]", ("[::1]:13700",)),
    ("[::1]:5,[fe80::2]", ("[::1]:5", "[fe80::2]:13700")),
    ('["[::1]:5"]', ("[::1]:5",)),
]


@pytest.mark.parametrize(("text", "found"), UPSTREAMS)
def test_a_list_is_read_alike_from_a_flag_and_from_the_environment(text: str, found: tuple[str, ...]) -> None:
    assert load(flags=Flags(settings=(f"rq.upstreams={text}",))).dialects["rq"].upstreams == found
    assert load(environ={"DRAGOMAN_RQ__UPSTREAMS": text}).dialects["rq"].upstreams == found


@pytest.mark.parametrize(
    "text",
    [
        '["h:1"',
        '"h:1"',
        '["h:1"] x',
        "[1, 2]",
        '[["a"]]',
        '["a"]\ny = 1',
        "a b",
        "h:0",
        "h:65536",
        "h:x",
        ":5",
        '["h:1",',
        "{}",
        "a;b",
    ],
)
def test_what_is_no_list_is_refused_with_the_settings_name(text: str) -> None:
    for flags, environ, source in (
        (Flags(settings=(f"rq.upstreams={text}",)), {}, "--set"),
        (Flags(), {"DRAGOMAN_RQ__UPSTREAMS": text}, "DRAGOMAN_RQ__UPSTREAMS"),
    ):
        with pytest.raises(ConfigError, match=r"rq\.upstreams") as wrong:
            load(environ=environ, flags=flags)
        assert source in str(wrong.value)
        assert 'a list such as ["a.example:13700", "b.example"]' in str(wrong.value)


def test_a_file_has_a_list_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text('[rq]\nupstreams = ["h:1", "i"]\n')
    assert load(file).dialects["rq"].upstreams == ("h:1", "i:13700")
    file.write_text('[rq]\nupstreams = "h:1"\n')
    with pytest.raises(ConfigError, match=r"rq\.upstreams"):
        load(file)


def test_every_setting_is_read_back_from_the_form_in_which_it_is_shown() -> None:
    config = load(
        flags=Flags(settings=("rq.upstreams=a,b:2", "web.hosts=broker.example,[::1]", "rq.retries=7", "lake.root=x y"))
    )
    for key, declared in all_settings().items():
        if declared.kind.is_secret or key == "data":
            continue
        value = value_of(config, key)
        shown = declared.kind.write(value)
        given = shown[1:-1] if isinstance(value, str) else shown.strip('"')
        again = load(flags=Flags(settings=(f"{key}={given}",)))
        assert value_of(again, key) == value, key
