"""Faults of an operator, or of the machine: a bad setting, a damaged file, a full disk."""

from __future__ import annotations

from typing import Final

from dragoman.errors.kinds import DragomanError, OperatorError

EVIDENCE_SIZE_MAX: Final = 255  # a checkpoint gives its size one byte


class ConfigError(OperatorError):
    """A setting is unknown or has a value it cannot have."""

    code = "CONFIG_INVALID"
    exit_code = 2

    def __init__(self, key: str, source: str, problem: str) -> None:
        super().__init__(f"{key}: {problem} (from {source})")
        self.key, self.source, self.problem = key, source, problem


class BindNotLoopback(ConfigError):
    """A listener would be reachable from other machines although no security is configured."""

    code = "BIND_NOT_LOOPBACK"


class BadDocument(OperatorError):
    """A configuration document cannot be read; `line` is 0 where the notation does not tell."""

    code = "BAD_DOCUMENT"
    exit_code = 2

    def __init__(self, line: int, problem: str, file: str = "") -> None:
        place = ", ".join(part for part in (file, f"line {line}" if line else "") if part)
        super().__init__(f"{place}: {problem}" if place else problem)
        self.line, self.problem, self.file = line, problem, file


class BadObjectives(OperatorError):
    """The objectives file of the pipeline cannot be read, or says something that is no objective."""

    code = "BAD_OBJECTIVES"
    exit_code = 2

    def __init__(self, file: str, key: str, problem: str) -> None:
        super().__init__(f"{file}: {key}: {problem}" if key else f"{file}: {problem}")
        self.file, self.key, self.problem = file, key, problem


class JournalUnavailable(DragomanError):
    """The journal cannot keep anything more just now; new work is refused until it can again."""

    code = "JOURNAL_UNAVAILABLE"


class JournalFull(JournalUnavailable):
    """No room is left on the disk: what is waiting may settle, nothing new is taken. Ends by itself when space is back."""

    code = "JOURNAL_FULL"

    def __init__(self, directory: str, needed: int, free: int) -> None:
        super().__init__(f"no room for the journal in {directory}: {needed} bytes needed, {free} free")
        self.directory, self.needed, self.free = directory, needed, free


class JournalFailing(JournalUnavailable):
    """The disk refuses to write or to sync; uncommitted blocks stay in memory and go to a new segment when it can."""

    code = "JOURNAL_FAILING"

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(f"the disk under {directory} fails: {reason}")
        self.directory, self.reason = directory, reason


class JournalDamaged(OperatorError):
    """Bytes that were once safely on disk are no longer what was written."""

    code = "JOURNAL_DAMAGED"
    exit_code = 5

    def __init__(self, file: str, offset: int, lsn: int, reason: str) -> None:
        super().__init__(
            f"journal damaged: {file} at byte {offset} (fact {lsn}): {reason}. Nothing was changed. "
            f"`dragoman journal verify` lists the damage; `dragoman journal salvage` copies all that is intact"
        )
        self.file, self.offset, self.lsn, self.reason = file, offset, lsn, reason


class RecordDamaged(OperatorError):
    """The bytes a message's body should be read from cannot be read, or are not what was written: that message is quarantined."""

    code = "RECORD_DAMAGED"
    exit_code = 5

    def __init__(self, file: str, offset: int, reason: str) -> None:
        super().__init__(f"the record of this message is damaged: {file} at byte {offset}: {reason}")
        self.file, self.offset, self.reason = file, offset, reason
        # Kept with the message in its quarantined fact and in checkpoints.
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
    """A directory is not fit for what was asked: not empty, not a journal, not a finished backup, of two brokers."""

    code = "JOURNAL_MISPLACED"
    exit_code = 5


class IndexerBusy(OperatorError):
    """Another process makes the indexes of this journal."""

    code = "INDEXER_BUSY"

    def __init__(self, directory: str) -> None:
        super().__init__(f"the journal of {directory} is being indexed already: `dragoman up` does it by itself")
        self.directory = directory


class DataDirectoryBusy(OperatorError):
    """Another broker lives in this data directory."""

    code = "DATA_DIRECTORY_BUSY"

    def __init__(self, path: object) -> None:
        super().__init__(f"a broker already runs on {path}; stop it, or give this one a data directory of its own")


class DataDirectoryUnusable(OperatorError):
    """The data directory cannot be made or written to."""

    code = "DATA_DIRECTORY_UNUSABLE"

    def __init__(self, path: object, error: OSError) -> None:
        super().__init__(f"the data directory {path} cannot be used: {error.strerror}")


class ListenerTaken(OperatorError):
    """An address that was asked for explicitly cannot be bound."""

    code = "LISTENER_TAKEN"

    def __init__(self, name: str, address: str, error: OSError) -> None:
        super().__init__(
            f"listener {name} cannot bind {address}: {error.strerror}; free the port, choose another with "
            f"--listen {name}=ADDRESS, or leave it out with --listen {name}=off"
        )


class NoListener(OperatorError):
    """Not one listener could be bound."""

    code = "NO_LISTENER"

    def __init__(self) -> None:
        super().__init__("no listener is on: every one is switched off or its port is taken")
