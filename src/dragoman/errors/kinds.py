"""The base classes of deliberate errors, and the decorator that declares one: its stable code, its text, and the fields named in the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, dataclass_transform


class DragomanError(Exception):
    """Any error that dragoman raises on purpose."""

    code: ClassVar[str] = "ERROR"
    template: ClassVar[str] = ""  # of the text, with fields in braces; empty: the caller passes the text
    fields: ClassVar[tuple[str, ...]] = ()
    exit_code: ClassVar[int] = 1  # of a command that ends with this error

    def __init__(self, *values: Any, **named: Any) -> None:
        if not self.template:
            super().__init__(*values)
            return
        self.__dict__.update(zip(self.fields, values, strict=False), **named)
        super().__init__(self.template.format_map({name: getattr(self, name) for name in self.fields}))


Error = TypeVar("Error", bound=DragomanError)


def coded(code: str, exit_code: int = 1) -> Callable[[type[Error]], type[Error]]:
    """Declare the stable code of an error class."""

    def declare(kind: type[Error]) -> type[Error]:
        kind.code, kind.exit_code = code, exit_code
        return kind

    return declare


@dataclass_transform(eq_default=False)
def error(code: str, template: str, exit_code: int = 1) -> Callable[[type[Error]], type[Error]]:
    """Declare an error class. Its annotations are its fields and the arguments of its constructor, in this order; `template` names them in braces."""

    def declare(kind: type[Error]) -> type[Error]:
        kind.template, kind.fields = template, tuple(kind.__annotations__)
        return coded(code, exit_code)(kind)

    return declare


class PeerError(DragomanError):
    """A peer violated its protocol; its connection ends, the broker continues."""

    code = "PEER_ERROR"
    answer: ClassVar[bytes] = b""  # sent before the connection ends, where the peer may understand it


class OperatorError(DragomanError):
    """The operator must act: the text says what is wrong and what to do."""

    code = "OPERATOR_ERROR"
