"""What can be asked of a running broker through its admin socket."""

from __future__ import annotations

from typing import Final

from dragoman.runtime.operations import changes, questions, watching
from dragoman.runtime.operations.face import BrokerFace, Operation, OperationRefused, Stream

__all__ = ["OPERATIONS", "BrokerFace", "Operation", "OperationRefused", "Stream"]

OPERATIONS: Final[dict[str, type[Operation]]] = {
    "status": questions.Status,
    "counters": questions.Counters,
    "queues": questions.Queues,
    "workers": questions.Workers,
    "message": questions.MessageView,
    "explain": questions.Explain,
    "cancel": changes.Cancel,
    "quarantine_list": questions.QuarantineList,
    "quarantine_retry": changes.QuarantineRetry,
    "quarantine_drop": changes.QuarantineDrop,
    "schedules": questions.Schedules,
    "unschedule": changes.Unschedule,
    "pause": changes.Pause,
    "resume": changes.Resume,
    "purge": changes.Purge,
    "config": questions.ConfigShow,
    "backup": changes.Backup,
    "stop": changes.Stop,
    "reload": changes.Reload,
    "dismiss": changes.Dismiss,
    "tap": watching.Tap,
}
