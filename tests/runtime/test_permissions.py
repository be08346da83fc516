"""Who may read what the broker and its children write: its own user, and the lake by the settings."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dragoman.client.app import App
from dragoman.errors import ConfigError
from dragoman.lake.store import Lake, Modes
from dragoman.runtime.config import Flags, load
from tests.lake.test_store import filled
from tests.runtime.daemon import Daemon
from tests.waiting import wait_for

SEALED_S = 100.0
pytestmark = pytest.mark.timeout(240)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def everything_in(directory: Path) -> list[Path]:
    return list(directory.rglob("*"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "file_mode", "directory_mode"),
    [((), 0o640, 0o750), (("lake.file_mode=0644", "lake.directory_mode=0755"), 0o644, 0o755)],
    ids=["default", "for everybody"],
)
def test_only_the_lake_is_for_others(
    tmp_path: Path, settings: tuple[str, ...], file_mode: int, directory_mode: int
) -> None:
    before = os.umask(0)  # the broker's own, not the test's, is what counts
    daemon = Daemon(tmp_path / "data", "lake.mode=on", "lake.interval_s=0.2", "journal.index=auto", *settings)
    daemon.listen["http"] = "tcp://127.0.0.1:0"
    try:
        daemon.start()
        with App(f"file:{daemon.data}") as app:
            for number in range(20):
                app.send_sync("mail", b"%d" % number)
        lake = daemon.data / "lake"
        wait_for("a file in the lake", lambda: list(lake.rglob("*.parquet")), SEALED_S)
        backup = tmp_path / "backup"
        daemon.ask("backup", target=str(backup))
        assert mode_of(daemon.data) == 0o710, "the group passes through it to the lake"
        for path in everything_in(daemon.data):
            found = mode_of(path)
            if path == lake or lake in path.parents:
                wanted = directory_mode if path.is_dir() else file_mode
                assert path.name.startswith(("_", ".")) or found == wanted, (path, oct(found))
            else:
                assert found & 0o077 == 0, (path, oct(found))
        for path in (backup, *everything_in(backup)):
            assert mode_of(path) & 0o077 == 0, (path, oct(mode_of(path)))
    finally:
        os.umask(before)
        daemon.kill()


def test_a_directory_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    daemon = Daemon(data)
    try:
        daemon.start()
        assert mode_of(data) == 0o755
    finally:
        daemon.kill()


def test_a_lake_without_modes_goes_by_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        filled(Lake(str(tmp_path / "plain")))
        filled(Lake(str(tmp_path / "deep" / "own"), modes=Modes(0o604, 0o705)))
    finally:
        os.umask(before)
    assert {oct(mode_of(path)) for path in everything_in(tmp_path / "plain")} == {"0o640", "0o750"}
    assert {oct(mode_of(path)) for path in everything_in(tmp_path / "deep" / "own")} == {"0o604", "0o705"}
    assert mode_of(tmp_path / "deep" / "own") == 0o705
    assert mode_of(tmp_path / "deep") == 0o750


@pytest.mark.parametrize("text", ["640", "0640", "0o640"])
def test_a_mode_is_written_in_octal(text: str) -> None:
    assert load(flags=Flags(settings=(f"lake.file_mode={text}",))).lake.file_mode == 0o640


@pytest.mark.parametrize("text", ["", "rw-r-----", "0440", "1640", "0680", "-640", "6400", "0o1640"])
def test_what_is_no_mode_or_shuts_the_broker_out_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"lake\.file_mode.*octal"):
        load(flags=Flags(settings=(f"lake.file_mode={text}",)))


def test_a_file_may_say_it_as_a_number_of_toml(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text("[lake]\nfile_mode = 0o644\n")
    assert load(file).lake.file_mode == 0o644
    file.write_text("[lake]\nfile_mode = 644\n")
    with pytest.raises(ConfigError, match=r"lake\.file_mode"):
        load(file)
