"""The base classes of deliberate errors; every other one derives from one of them."""

from __future__ import annotations

from typing import ClassVar


class DragomanError(Exception):
    """Any error that dragoman raises on purpose."""

    code: ClassVar[str] = "ERROR"


class PeerError(DragomanError):
    """A peer violated its protocol; its connection ends, the broker continues."""

    code = "PEER_ERROR"
    answer: ClassVar[bytes] = b""  # sent before the connection ends, where the peer may understand it


class OperatorError(DragomanError):
    """The operator must act: the text says what is wrong and what to do."""

    code = "OPERATOR_ERROR"
    exit_code: ClassVar[int] = 1
