"""All operations of the admin socket, by name."""

from __future__ import annotations

from typing import Final

from dragoman.runtime.admin import changes, looks, questions, watching
from dragoman.runtime.admin.face import BrokerFace, Operation, OperationRefused, Stream

__all__ = ["OPERATIONS", "BrokerFace", "Operation", "OperationRefused", "Stream"]

OPERATIONS: Final[dict[str, type[Operation]]] = {
    "status": questions.Status,
    "counters": questions.Counters,
    "tallies": looks.Tallies,
    "queue_tallies": looks.QueueTallies,
    "stuck": looks.Stuck,
    "queues": questions.Queues,
    "workers": questions.Workers,
    "worker": looks.WorkerView,
    "messages": looks.Messages,
    "message": questions.MessageView,
    "body": looks.Body,
    "explain": questions.Explain,
    "cancel": changes.Cancel,
    "retry": changes.Retry,
    "quarantine_list": questions.QuarantineList,
    "quarantine_retry": changes.QuarantineRetry,
    "quarantine_drop": changes.QuarantineDrop,
    "schedules": questions.Schedules,
    "unschedule": changes.Unschedule,
    "pause": changes.Pause,
    "drain_queue": changes.DrainQueue,
    "resume": changes.Resume,
    "purge": changes.Purge,
    "forget": changes.Forget,
    "config": questions.ConfigShow,
    "backup": changes.Backup,
    "stop": changes.Stop,
    "reload": changes.Reload,
    "dismiss": changes.Dismiss,
    "admit": changes.Admit,
    "disconnect": changes.Disconnect,
    "tap": watching.Tap,
}
