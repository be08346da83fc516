"""Settings: which source wins, what every mistake says, what is shown, what a reload may change."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dragoman.errors import BindNotLoopback, ConfigError
from dragoman.runtime.config import Config, Flags, load, reloadable_changes, render_toml
from dragoman.runtime.config.kinds import size_text
from dragoman.runtime.config.loading import value_of
from dragoman.runtime.config.sections import all_settings
from dragoman.runtime.config.sources import environment_name, known_keys
from tests.docs.reference_pages import render

REPOSITORY = Path(__file__).parents[3]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "dragoman.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_any_source_the_defaults_are_in_force() -> None:
    config = load()
    assert config == Config()
    assert config.data == Path("data")
    assert config.journal.durability == "disk"
    assert {name: one.address for name, one in config.listen.items()} == {
        "emqp.client": "tcp://127.0.0.1:47291",
        "emqp.worker": "tcp://127.0.0.1:47290",
        "emqp.admin": "tcp://127.0.0.1:47293",
        "emqp.publish": "tcp://127.0.0.1:47298",
        "emqp.subscribe": "tcp://127.0.0.1:47299",
        "scale0.client": "tcp://127.0.0.1:8080",
        "scale0.worker": "tcp://127.0.0.1:8081",
        "scale0.publish": "tcp://127.0.0.1:8082",
        "pingpong.client": "tcp://127.0.0.1:6001",
        "pingpong.worker": "tcp://127.0.0.1:6002",
        "ebus.client": "tcp://127.0.0.1:5000",
        "ebus.worker": "tcp://127.0.0.1:5001",
        "ebus.publish": "tcp://127.0.0.1:5002",
        "ebus.subscribe": "tcp://127.0.0.1:5003",
        "rq": "tcp://127.0.0.1:13700",
        "http": "tcp://127.0.0.1:8484",
    }
    assert not any(one.is_explicit or one.is_off for one in config.listen.values())


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(tmp_path: Path) -> None:
    path = written(tmp_path, "[queues]\nquarantine_after = 1\nhead_max = 1\nstarve_turns = 1\n")
    environ = {"DRAGOMAN_QUEUES__QUARANTINE_AFTER": "2", "DRAGOMAN_QUEUES__HEAD_MAX": "2"}
    config = load(path, environ, Flags(settings=("queues.quarantine_after=3",)))
    assert (config.queues.quarantine_after, config.queues.head_max, config.queues.starve_turns) == (3, 2, 1)
    assert config.queues.dedupe_keys_max == 100_000
    assert config.sources["queues.quarantine_after"] == "--set queues.quarantine_after=3"
    assert config.sources["queues.head_max"] == "environment variable DRAGOMAN_QUEUES__HEAD_MAX"
    assert config.sources["queues.starve_turns"] == f"{path}:4"
    assert "queues.dedupe_keys_max" not in config.sources


def test_the_file_can_be_named_by_the_environment(tmp_path: Path) -> None:
    path = written(tmp_path, 'data = "/srv/broker"\n')
    assert load(None, {"DRAGOMAN_CONFIG": str(path)}).data == Path("/srv/broker")


def test_the_short_flags_set_what_their_names_say() -> None:
    flags = Flags(data="here", durability="os", listen=("emqp.client=tcp://127.0.0.1:0", "emqp.admin=off"))
    config = load(flags=flags)
    assert config.data == Path("here")
    assert config.journal.durability == "os"
    client, admin = config.listen["emqp.client"], config.listen["emqp.admin"]
    assert (client.host, client.port, client.is_explicit, client.is_off) == ("127.0.0.1", 0, True, False)
    assert (admin.is_off, admin.is_explicit) == (True, True)
    assert not config.listen["emqp.worker"].is_explicit


@pytest.mark.parametrize("line", ['"emqp.client" = "off"', 'emqp.client = "off"', '[listen.emqp]\nclient = "off"'])
def test_a_listener_can_be_written_quoted_dotted_or_as_a_table(tmp_path: Path, line: str) -> None:
    assert load(written(tmp_path, f"[listen]\n{line}\n")).listen["emqp.client"].is_off


@pytest.mark.parametrize("key", known_keys())
def test_every_setting_can_be_given_by_file_environment_and_flag(tmp_path: Path, key: str) -> None:
    default = value_of(Config(), key)
    if key.startswith("listen."):
        shown, text = f'"{default.address}"', default.address
    else:
        shown = all_settings()[key].kind.write(default)
        text = shown.strip('"')
    section, _, name = key.partition(".")
    line = f'[{section}]\n"{name}" = {shown}\n' if name else f"{key} = {shown}\n"
    for config in (
        load(written(tmp_path, line)),
        load(environ={environment_name(key): text}),
        load(flags=Flags(settings=(f"{key}={text}",))),
    ):
        assert list(config.sources) == [key]
        given = value_of(config, key)
        assert (given.address if key.startswith("listen.") else given) == (
            default.address if key.startswith("listen.") else default
        )


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MiB", 64 * 2**20), ("2 GiB", 2 * 2**30), ("1GB", 10**9), ("70_000", 70_000), ("65536B", 65536)],
)
def test_a_size_is_read_with_or_without_a_unit(text: str, size: int) -> None:
    assert load(environ={"DRAGOMAN_JOURNAL__SEGMENT_SIZE": text}).journal.segment_size == size


def test_a_size_is_written_with_the_largest_unit_that_divides_it() -> None:
    assert [size_text(size) for size in (0, 1, 1024, 3 * 2**20, 10 * 2**30, 1000)] == [
        "0", "1", "1KiB", "3MiB", "10GiB", "1000",
    ]  # fmt: skip


MISTAKES = [
    ("journal.durability", '"often"', 'expected one of "memory", "os", "disk", got "often"'),
    ("journal.durability", "1", 'expected one of "memory", "os", "disk", got 1'),
    ("journal.size_max", '"10 parsecs"', "expected a size"),
    ("journal.size_max", "-1", "expected a size"),
    ("journal.size_max", "true", "expected a size"),
    ("queues.quarantine_after", '"3"', 'expected a whole number of at least 0, got "3"'),
    ("queues.quarantine_after", "1.5", "expected a whole number of at least 0, got 1.5"),
    ("queues.quarantine_after", "-1", "expected a whole number of at least 0, got -1"),
    ("queues.quarantine_after", "true", "expected a whole number of at least 0, got true"),
    ("drain.limit_s", "nan", "expected a number of seconds, at least 0, got nan"),
    ("drain.limit_s", "inf", "expected a number of seconds"),
    ("drain.limit_s", "[1]", "expected a number of seconds"),
    ("emqp.heartbeat_s", "0", "expected a number of seconds greater than 0, got 0"),
    ("emqp.json_only", '"yes"', 'expected true or false, got "yes"'),
    ("emqp.default_queue", '""', "expected a name, not empty"),
    ("schedules.timezone", '"Mars/Olympus"', 'expected a time zone such as "UTC"'),
    ("schedules.timezone", '"Europe"', 'expected a time zone such as "UTC"'),
    ("schedules.timezone", '"../etc/passwd"', 'expected a time zone such as "UTC"'),
    ("listen.emqp.client", '"127.0.0.1:1"', 'expected "tcp://HOST:PORT"'),
    ("listen.emqp.client", '"tcp://127.0.0.1:65536"', 'expected "tcp://HOST:PORT"'),
    ("listen.emqp.client", '"tcp://[zz]:1"', 'expected "tcp://HOST:PORT"'),
    ("listen.emqp.client", "47291", 'expected "tcp://HOST:PORT"'),
]


@pytest.mark.parametrize(("key", "value", "said"), MISTAKES)
def test_a_wrong_value_is_refused_with_its_key_its_line_and_what_was_expected(
    tmp_path: Path, key: str, value: str, said: str
) -> None:
    section, _, name = key.partition(".")
    path = written(tmp_path, f'# a comment\n\n[{section}]\n"{name}" = {value}\n')
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert (caught.value.key, caught.value.source) == (key, f"{path}:4")
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{key}: ")
    assert (caught.value.code, caught.value.exit_code) == ("CONFIG_INVALID", 2)


@pytest.mark.parametrize(
    ("key", "proposal"),
    [
        ("journal.durabilty", "journal.durability"),
        ("queues.durability", "journal.durability"),
        ("listen.emqp.clients", "listen.emqp.client"),
        ("dat", "data"),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_that_was_probably_meant(key: str, proposal: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(flags=Flags(settings=(f"{key}=1",)))
    assert str(caught.value) == f"{key}: there is no such setting; did you mean {proposal}? (from --set {key}=1)"


def test_an_unknown_key_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(ConfigError, match=r"^zzz\.qqq: there is no such setting \(from --set zzz\.qqq=1\)$"):
        load(flags=Flags(settings=("zzz.qqq=1",)))


def test_a_variable_with_an_unknown_key_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"did you mean journal\.size_max\?.*DRAGOMAN_JOURNAL__SIZEMAX"):
        load(environ={"DRAGOMAN_JOURNAL__SIZEMAX": "1GiB"})


def test_for_a_variable_with_one_underscore_too_few_the_error_names_the_right_one() -> None:
    with pytest.raises(ConfigError, match="write DRAGOMAN_JOURNAL__SIZE_MAX, with two underscores"):
        load(environ={"DRAGOMAN_JOURNAL_SIZE_MAX": "1GiB"})


def test_variables_that_a_container_platform_makes_up_are_not_settings() -> None:
    environ = {"DRAGOMAN_EMQP_PORT": "tcp://10.0.0.1:1", "DRAGOMAN_SERVICE_HOST": "10.0.0.1", "DRAGOMAN_PURE": "1"}
    assert load(environ=environ) == Config()


@pytest.mark.parametrize("flags", [Flags(settings=("queues.quarantine_after",)), Flags(listen=("emqp.client",))])
def test_a_flag_without_its_value_is_refused(flags: Flags) -> None:
    with pytest.raises(ConfigError, match=r"expected [A-Z.]+=[A-Z]+"):
        load(flags=flags)


def test_a_file_that_is_not_toml_is_refused_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not valid TOML: .*line 2"):
        load(written(tmp_path, "[journal]\ndurability disk\n"))


def test_a_file_that_is_not_there_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the file cannot be read: No such file.*none\.toml"):
        load(tmp_path / "none.toml")


@pytest.mark.parametrize(
    "address", ["tcp://0.0.0.0:1", "tcp://*:1", "tcp://[::]:1", "tcp://192.168.1.2:1", "tcp://broker.example:1"]
)
def test_an_address_that_others_can_reach_is_refused_until_it_is_allowed(address: str) -> None:
    flags = Flags(listen=(f"emqp.client={address}",))
    with pytest.raises(BindNotLoopback) as caught:
        load(flags=flags)
    assert caught.value.code == "BIND_NOT_LOOPBACK"
    assert "security.insecure = true" in str(caught.value)
    allowed = load(environ={"DRAGOMAN_SECURITY__INSECURE": "true"}, flags=flags)
    assert allowed.listen["emqp.client"].address == address


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:0", "tcp://127.1.2.3:5", "tcp://[::1]:5", "tcp://localhost:5"])
def test_a_loopback_address_needs_no_permission(address: str) -> None:
    assert load(flags=Flags(listen=(f"emqp.client={address}",))).listen["emqp.client"].is_loopback


def test_a_worker_cannot_be_lost_before_its_heartbeat_is_due() -> None:
    with pytest.raises(ConfigError, match=r"emqp\.worker_lost_s: expected more than emqp\.heartbeat_s \(9\), got 5"):
        load(flags=Flags(settings=("emqp.heartbeat_s=9",)))


def test_the_longest_backoff_is_not_shorter_than_the_first() -> None:
    with pytest.raises(ConfigError, match=r"queues\.backoff_max_s: expected at least queues\.backoff_initial_s"):
        load(flags=Flags(settings=("queues.backoff_max_s=0.5",)))


def test_the_journal_has_space_for_the_file_being_written_and_a_spare_one() -> None:
    with pytest.raises(
        ConfigError, match=r"journal\.size_max: expected room for two files.*--set journal\.size_max=64MiB"
    ):
        load(flags=Flags(settings=("journal.size_max=64MiB",)))


def test_the_shown_file_means_what_is_in_force(tmp_path: Path) -> None:
    flags = Flags(
        data="/srv/a b",
        durability="os",
        listen=("emqp.admin=off", "emqp.client=tcp://127.0.0.1:7"),
        settings=("drain.limit_s=0.5", "journal.size_max=1000000001", "emqp.json_only=false"),
    )
    config = load(flags=flags)
    assert load(written(tmp_path, render_toml(config))) == config


def test_the_shown_defaults_are_all_commented_out_and_complete(tmp_path: Path) -> None:
    text = render_toml(Config())
    assert not any(tomllib.loads(text).values())
    assert load(written(tmp_path, text)).sources == {}
    for key in known_keys():
        name = key.removeprefix("listen.") if key.startswith("listen.") else key.rpartition(".")[2]
        assert f"\n# {name} = " in text or f'\n# "{name}" = ' in text
    uncommented = text.replace("# ", "")
    assert all(line in uncommented for line in ('durability = "disk"', "head_max = 100_000", 'size_max = "10GiB"'))


def test_a_reload_applies_what_it_can_and_names_what_must_wait() -> None:
    old = load(flags=Flags(durability="os"))
    new = load(
        flags=Flags(data="elsewhere", durability="disk", settings=("log.level=debug", "queues.quarantine_after=4"))
    )
    changes = reloadable_changes(old, new)
    assert changes.applied == ("queues.quarantine_after", "log.level")
    assert changes.needs_restart == ("data", "journal.durability")
    assert (changes.effective.log.level, changes.effective.queues.quarantine_after) == ("debug", 4)
    assert (changes.effective.data, changes.effective.journal.durability) == (Path("data"), "os")
    assert changes.effective.sources == {
        "journal.durability": "--durability",
        "log.level": "--set log.level=debug",
        "queues.quarantine_after": "--set queues.quarantine_after=4",
    }


def test_a_reload_cannot_move_a_listener_but_may_write_its_default_down() -> None:
    old = load()
    moved = load(flags=Flags(listen=("emqp.client=tcp://127.0.0.1:9",)))
    same = load(flags=Flags(listen=("emqp.client=tcp://127.0.0.1:47291",)))
    assert reloadable_changes(old, moved).needs_restart == ("listen.emqp.client",)
    assert reloadable_changes(old, moved).effective.listen == old.listen
    assert reloadable_changes(old, same).needs_restart == ()


def test_a_reload_of_the_same_settings_changes_nothing() -> None:
    config = load(flags=Flags(durability="os"))
    changes = reloadable_changes(config, load(flags=Flags(durability="os")))
    assert (changes.effective, changes.applied, changes.needs_restart) == (config, (), ())


def test_the_reference_page_and_the_sample_file_are_current() -> None:
    page = (REPOSITORY / "docs/reference/config.md").read_text(encoding="utf-8")
    assert page == render("config.md", page), "run `make docs`"
    assert (REPOSITORY / "contrib/dragoman.toml").read_text(encoding="utf-8") == render_toml(Config()), (
        "run `make docs`"
    )
