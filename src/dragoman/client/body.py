"""The bodies of jobs and answers: JSON in EventMQ's format.

    ["run", {"path": "shop.mail", "callable": "send", "class_args": [], "class_kwargs": {}, "args": [], "kwargs": {"to": "a@b.c"}}]
    {"value": 7}                                                   an answer
        {"error": {"type": "ValueError", "message": "no such box"}}    a failure, as our workers and the broker send it

So an EventMQ job manager can run our jobs, and our worker can run those of an EventMQ client. Arguments are decoded to the annotations of
the function. Nothing is ever unpickled.
"""

from __future__ import annotations

import inspect
import json
import math
import typing
from collections.abc import Callable
from typing import Any, Final

import msgspec

from dragoman.errors import ClientError, JobFailed, NotFinite, Refused
from dragoman.limits import ERROR_TEXT_SIZE_MAX, NAME_SHOWN_SIZE_MAX
from dragoman.model.enums import REFUSAL_CODES
from dragoman.printable import cut

encode: Final = msgspec.json.Encoder().encode
# Raises ValueError for a float that is not finite: the fastest check of a large value.
_encode_strictly: Final = json.JSONEncoder(allow_nan=False, check_circular=False).encode
WALKED_SIZE_MAX: Final = 2048  # in bytes of JSON; above this, the check in C is faster
REFUSALS: Final = frozenset(REFUSAL_CODES)
# EventMQ's own worker answers with this value when a job ran out of time; any other value is a result.
TIMEOUT_VALUE: Final = "TimeoutError"
VALUE_START: Final = b'{"value":'
ERROR_START: Final = b'{"error"'
TEXT_SIZE_MAX: Final = 500  # of a reason, in characters
NO_ARGS: Final = b"[]"
NULL: Final = b"null"
# PLAIN_MARK is between the head of one of our own bodies and its named arguments, PLAIN_END after them. No JSON string can contain
# the mark: its quotes would be escaped.
PLAIN_MARK: Final = b',"args":[],"kwargs":'
PLAIN_END: Final = b"}]"
SHAPES_MAX: Final = 1000


class Run(msgspec.Struct):
    """The function that a request names, with its arguments."""

    path: str
    callable: str
    args: msgspec.Raw = msgspec.Raw(NO_ARGS)
    kwargs: msgspec.Raw = msgspec.Raw(b"{}")
    class_args: list[Any] = []
    class_kwargs: dict[str, Any] = {}


class Problem(msgspec.Struct):
    """The error in an answer."""

    type: str = "Error"
    message: str = ""


_decode_run: Final = msgspec.json.Decoder(tuple[str, Run]).decode


def decode_run(body: bytes) -> Run:
    """Decode a request's body; raises msgspec.DecodeError."""
    return _decode_run(body)[1]


def encode_finite(value: object, what: str) -> bytes:
    """Encode a value as JSON; raises TypeError for what JSON cannot represent, and NotFinite for a float that is not finite. The encoder
    writes such floats as null, so only output that contains a null is checked."""
    data = encode(value)
    if NULL in data and value is not None:
        plain = msgspec.to_builtins(value, str_keys=True)
        if not (is_finite(plain) if len(data) < WALKED_SIZE_MAX else _is_finite_large(plain)):
            error = not_finite_in(plain, what)
            assert error is not None, "nothing else is no JSON once it was encoded"
            raise error
    return data


def is_finite(value: Any) -> bool:
    """Whether every float in a value of lists, dicts and scalars is finite."""
    kind = type(value)
    if kind is float:
        return math.isfinite(value)
    if kind is dict:
        return all(map(is_finite, value.values()))
    return all(map(is_finite, value)) if kind is list or kind is tuple else True


def _is_finite_large(value: Any) -> bool:
    try:
        _encode_strictly(value)
    except ValueError:
        return False
    return True


def not_finite_in(value: object, path: str) -> NotFinite | None:
    """The error for the first float that is not finite in a value of lists, dicts and scalars."""
    if isinstance(value, float):
        return None if math.isfinite(value) else NotFinite(cut(path, NAME_SHOWN_SIZE_MAX), value)
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    errors = (not_finite_in(item, f"{path}[{key!r}]") for key, item in items)
    return next((error for error in errors if error is not None), None)


def value_of(result: object) -> bytes:
    """Encode a result as an answer; raises TypeError and NotFinite for what JSON cannot represent."""
    return VALUE_START + encode_finite(result, "the result") + b"}"


def failure_of(error: BaseException) -> bytes:
    """Encode an exception as an answer, whatever its text: it may contain a file name that is not Unicode, and its `__str__` may fail."""
    try:
        message = cut(str(error), ERROR_TEXT_SIZE_MAX)
    except Exception as failure:
        message = f"its message cannot be shown: {type(failure).__name__}"
    shown = message.encode("utf-8", "backslashreplace").decode()
    kind = cut(type(error).__name__, NAME_SHOWN_SIZE_MAX).encode("utf-8", "backslashreplace").decode()
    return encode({"error": {"type": kind, "message": shown}})


class Arguments:
    """A function's parameters: the caller checks and encodes arguments, the worker decodes them to their annotations."""

    def __init__(self, function: Callable[..., Any], path: str, name: str) -> None:
        self._signature = inspect.signature(function)
        hints = hints_of(function)
        parameters = list(self._signature.parameters.values())
        by_name = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        self._order = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        self.is_plain = len(by_name) == len(parameters)  # all can be passed by name
        self._types = {p.name: hints.get(p.name, Any) for p in parameters}
        # A body without its arguments: a worker identifies the function by it, without parsing the JSON.
        self.head = encode(["run", {"path": path, "callable": name, "class_args": [], "class_kwargs": {}}])[:-2]
        self._plain_head = self.head + PLAIN_MARK
        self._shapes: set[tuple[str, ...]] = set()  # sets of argument names that fit the signature
        self._decode_kwargs: Callable[[bytes | msgspec.Raw], Any] | None = None
        if self.is_plain:
            fields = [_field(p, self._types[p.name]) for p in by_name]
            shape = msgspec.defstruct("Arguments", fields, forbid_unknown_fields=True, kw_only=True)
            self._decode_kwargs = msgspec.json.Decoder(shape).decode

    def body(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Encode a request's body; raises TypeError as a direct call with these arguments would, NotFinite for what JSON cannot represent."""
        if not self.is_plain:
            self._signature.bind(*args, **kwargs)
            named = encode_finite(kwargs, "the arguments")
            return b'%s,"args":%s,"kwargs":%s}]' % (self.head, encode_finite(args, "the arguments"), named)
        if args:
            kwargs = self._named(args, kwargs)
        shape = tuple(kwargs)
        if shape not in self._shapes:
            self._signature.bind(**kwargs)
            if len(self._shapes) < SHAPES_MAX:
                self._shapes.add(shape)
        return self._plain_head + encode_finite(kwargs, "the arguments") + PLAIN_END

    def _named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) > len(self._order) or not kwargs.keys().isdisjoint(self._order[: len(args)]):
            self._signature.bind(*args, **kwargs)
        return dict(zip(self._order, args, strict=False)) | kwargs

    def decode_plain(self, body: bytes, kwargs_at: int) -> dict[str, Any]:
        """The arguments of a body that begins with `head` and PLAIN_MARK."""
        assert self._decode_kwargs is not None
        return msgspec.structs.asdict(self._decode_kwargs(body[kwargs_at : -len(PLAIN_END)]))

    def decode(self, run: Run) -> tuple[list[Any], dict[str, Any]]:
        """The arguments to call the function with; raises msgspec.ValidationError and TypeError."""
        if self._decode_kwargs is not None and bytes(run.args) == NO_ARGS:
            return [], msgspec.structs.asdict(self._decode_kwargs(run.kwargs))
        args = msgspec.json.decode(run.args, type=list[Any])
        kwargs = msgspec.json.decode(run.kwargs, type=dict[str, Any])
        bound = self._signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            kind = self._signature.parameters[name].kind
            wanted = self._types[name]
            if kind is inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[name] = tuple(msgspec.convert(item, wanted) for item in value)
            elif kind is inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = {key: msgspec.convert(item, wanted) for key, item in value.items()}
            else:
                bound.arguments[name] = msgspec.convert(value, wanted)
        return list(bound.args), bound.kwargs


class Answers:
    """A function's result: decoded to its annotation, or raised as an exception."""

    def __init__(self, function: Callable[..., Any]) -> None:
        result = hints_of(function).get("return", Any)
        fields: list[tuple[str, Any, Any]] = [
            ("value", typing.Union[result, msgspec.UnsetType], msgspec.UNSET),  # noqa: UP007 - `result` is a variable
            ("error", Problem | msgspec.UnsetType, msgspec.UNSET),
        ]
        decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(msgspec.defstruct("Answer", fields))
        self.decode = decoder.decode

    def read(self, value: bytes) -> Any:
        """Decode the result, or raise the error in the answer: Refused or JobFailed."""
        try:
            answer = self.decode(value)
        except msgspec.DecodeError as error:
            raise problem_of(value, str(error)) from None
        if answer.value is msgspec.UNSET:
            raise problem_of(value, "neither a value nor an error")
        return answer.value


def problem_of(value: bytes, otherwise: str) -> ClientError:
    """The exception for an answer that is not a result; `otherwise` describes what is wrong with a value in it."""
    try:
        answer = _ANY_ANSWER.decode(value)
    except msgspec.DecodeError as error:
        return JobFailed("BadAnswer", str(error))
    problem = answer.error
    if isinstance(problem, Problem):
        kind = Refused if problem.type in REFUSALS else JobFailed
        return kind(cut(problem.type, NAME_SHOWN_SIZE_MAX), cut(problem.message, ERROR_TEXT_SIZE_MAX))
    if answer.value == TIMEOUT_VALUE:
        return JobFailed(TIMEOUT_VALUE, "the job ran out of time")
    return JobFailed("BadAnswer", f"{otherwise}: {str(answer.value)[:500]}")


def failure_in(value: bytes) -> ClientError:
    """The exception for a failure that the broker reports instead of an answer: our own JSON, `CODE: text`, or a worker's bytes."""
    if value.startswith(ERROR_START):
        return problem_of(value, "no answer")
    code, text = _code_and_text(value, "FAILED")
    return Refused(code, text) if code in REFUSALS else JobFailed(code, text)


def refusal_in(value: bytes, otherwise: str = "REFUSED") -> ClientError:
    """The exception for a request that the broker refused."""
    if value.startswith(ERROR_START):
        return problem_of(value, "not accepted")
    return Refused(*_code_and_text(value, otherwise))


def _code_and_text(value: bytes, otherwise: str) -> tuple[str, str]:
    text = value.decode("utf-8", "backslashreplace")[:TEXT_SIZE_MAX]
    code, _, rest = text.partition(":")
    if code and all("A" <= letter <= "Z" or letter == "_" for letter in code):
        return code, rest.strip()
    return otherwise, text or "the broker gives no reason"


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError):
        # The annotations use names that exist only for the type checker: values keep the types that JSON gives them.
        return {}


def _field(parameter: inspect.Parameter, wanted: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
    if parameter.default is parameter.empty:
        return (parameter.name, wanted)
    default = parameter.default
    return (parameter.name, wanted, msgspec.field(default_factory=lambda: default))


_ANY_ANSWER: Final = Answers(lambda: None)  # the value has no declared type
plain_value: Final = _ANY_ANSWER.read
