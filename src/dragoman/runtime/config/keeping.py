"""The settings of storage: the journal, and the lake of its facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from dragoman import limits
from dragoman.journal.settings import JournalSettings
from dragoman.runtime.config import kinds
from dragoman.runtime.config.kinds import setting
from dragoman.runtime.config.targets import unchanged, whole_seconds

JOURNAL: Final = JournalSettings(directory="")


@dataclass(frozen=True, slots=True)
class JournalConfig:
    """What the broker stores, and how durably."""

    durability: Literal["memory", "os", "disk"] = setting(
        unchanged(JOURNAL, "durability"),
        kinds.one_of("memory", "os", "disk"),
        "What must have happened to a fact before anything it caused leaves the broker: disk = on stable storage "
        "(survives power loss), os = written to the file (survives kill -9), memory = nothing is kept.",
    )
    segment_size: int = setting(
        unchanged(JOURNAL, "segment_size"), kinds.size(limits.SEGMENT_SIZE_MIN), "Bytes in one journal file."
    )
    size_max: int = setting(
        unchanged(JOURNAL, "size_max"),
        kinds.size(2**20),
        "Bytes of all journal files. Over it, the oldest settled ones go; when live messages alone fill it, new work "
        "is refused with JOURNAL_FULL.",
        reloadable=True,
    )
    age_max_s: float = setting(
        whole_seconds(JOURNAL, "age_max_s"),
        kinds.seconds(),
        "Settled journal files older than this go. 0 = kept until size_max.",
        reloadable=True,
    )
    free_min: int = setting(
        unchanged(JOURNAL, "free_min"),
        kinds.size(0),
        "Bytes that stay free on the journal's disk: with less, the oldest settled journal files go, once the lake has them. New work is "
        "refused only when no room is left at all.",
        reloadable=True,
    )
    scrub_rate: int = setting(
        unchanged(JOURNAL, "scrub_rate"),
        kinds.size(0),
        "Bytes a second of sealed journal files that are proved again in the background, so that damage is found before the data is "
        "needed. 0 = never.",
    )
    scrub_interval_s: float = setting(
        whole_seconds(JOURNAL, "scrub_interval_s"), kinds.seconds(1.0), "How often all of them are proved, at most."
    )
    index: Literal["auto", "off"] = setting(
        "auto",
        kinds.one_of("auto", "off"),
        "auto = a process beside the broker indexes the journal, so that a trace finds any message at once (about 11 bytes a "
        "fact); off = traces read the whole journal. `dragoman journal index` does it by hand.",
    )


@dataclass(frozen=True, slots=True)
class LakeConfig:
    """The journal's facts as Parquet files, for Spark and other readers; written by a process of its own."""

    mode: Literal["auto", "on", "off"] = setting(
        "auto",
        kinds.one_of("auto", "on", "off"),
        "auto = written if pyarrow is installed (dragoman[lake], dragoman[spark]), on = refuse to start without it, off = not "
        "written; `dragoman seal` can do it later from what the journal still keeps.",
    )
    root: str = setting(
        "", kinds.text(), "A directory, or an address that pyarrow's file systems take (s3://…). Empty = DATA/lake."
    )
    bodies: Literal["none", "hash", "full"] = setting(
        "hash",
        kinds.one_of("none", "hash", "full"),
        "What the lake holds of bodies: their size, size and hash, or all.",
    )
    interval_s: float = setting(
        5.0, kinds.seconds(more_than_zero=True), "The longest a committed fact waits for the lake."
    )
    rows_max: int = setting(
        250_000, kinds.integer(1000), "Facts in one file of `incoming`; with so many it is written at once."
    )
    incoming_keep_s: float = setting(
        86_400.0,
        kinds.seconds(),
        "How long files that were compacted into `history` stay in `incoming`, for streams that are behind.",
    )
    file_mode: int = setting(
        limits.LAKE_FILE_MODE,
        kinds.mode(0o600),
        "Permissions of the lake's files in a local directory, whatever the umask is. Everything else that the broker writes is for its own user "
        "alone.",
    )
    directory_mode: int = setting(
        limits.LAKE_DIRECTORY_MODE,
        kinds.mode(0o700),
        "Permissions of the lake's directories that the broker makes. With the default a Spark of another user of the group reads it.",
    )
