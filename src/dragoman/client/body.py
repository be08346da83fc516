"""The bodies of jobs and of answers: JSON in EventMQ's own shape.

    ["run", {"path": "shop.mail", "callable": "send", "class_args": [], "class_kwargs": {}, "args": [], "kwargs": {"to": "a@b.c"}}]
    {"value": 7}                                                   an answer
    {"error": {"type": "ValueError", "message": "no such box"}}    a failure, as our workers and the broker say it

So a job manager of EventMQ can run our jobs and our worker those of an EventMQ client. Arguments are decoded to the annotations
of the function. Nothing is ever unpickled.
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
from dragoman.model.words import REFUSAL_CODES
from dragoman.printable import cut

encode: Final = msgspec.json.Encoder().encode
# Raises ValueError for a float that is not finite: the quickest look at many of them.
_encode_strictly: Final = json.JSONEncoder(allow_nan=False, check_circular=False).encode
WALKED_SIZE_MAX: Final = 2048  # in bytes of JSON; beyond, the look in C is quicker
REFUSALS: Final = frozenset(REFUSAL_CODES)
# How EventMQ's own worker says that a job ran out of time; anything else it answers is a value.
TIMEOUT_VALUE: Final = "TimeoutError"
VALUE_START: Final = b'{"value":'
ERROR_START: Final = b'{"error"'
TEXT_SIZE_MAX: Final = 500  # of a reason, in characters
NO_ARGS: Final = b"[]"
NULL: Final = b"null"
# Between the head of one of our own bodies and its named arguments, and behind them. No JSON string can hold the mark: its
# quotes would be escaped.
PLAIN_MARK: Final = b',"args":[],"kwargs":'
PLAIN_END: Final = b"}]"
SHAPES_MAX: Final = 1000


class Run(msgspec.Struct):
    """What a request asks to be run."""

    path: str
    callable: str
    args: msgspec.Raw = msgspec.Raw(NO_ARGS)
    kwargs: msgspec.Raw = msgspec.Raw(b"{}")
    class_args: list[Any] = []
    class_kwargs: dict[str, Any] = {}


class Problem(msgspec.Struct):
    """Why there is no value."""

    type: str = "Error"
    message: str = ""


_decode_run: Final = msgspec.json.Decoder(tuple[str, Run]).decode


def decode_run(body: bytes) -> Run:
    """Read a request's body; raises msgspec.DecodeError."""
    return _decode_run(body)[1]


def encode_finite(value: object, what: str) -> bytes:
    """JSON of a value; raises TypeError for what JSON cannot carry, and NotFinite for the floats among it. The encoder writes those as null,
    so only a text with a null in it is looked at again."""
    data = encode(value)
    if NULL in data and value is not None:
        plain = msgspec.to_builtins(value, str_keys=True)
        if not (is_finite(plain) if len(data) < WALKED_SIZE_MAX else _is_finite_large(plain)):
            error = not_finite_in(plain, what)
            assert error is not None, "nothing else is no JSON once it was encoded"
            raise error
    return data


def is_finite(value: Any) -> bool:
    """Whether every float in a value of lists, dicts and scalars is a number."""
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
    """The error for the first float in a value of lists, dicts and scalars that is no number."""
    if isinstance(value, float):
        return None if math.isfinite(value) else NotFinite(cut(path, NAME_SHOWN_SIZE_MAX), value)
    if isinstance(value, dict):
        for name, item in value.items():
            found = not_finite_in(item, f"{path}[{name!r}]")
            if found is not None:
                return found
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            found = not_finite_in(item, f"{path}[{number}]")
            if found is not None:
                return found
    return None


def value_of(result: object) -> bytes:
    """Say a result; raises TypeError and NotFinite for what JSON cannot carry."""
    return VALUE_START + encode_finite(result, "the result") + b"}"


def failure_of(error: BaseException) -> bytes:
    """Say an exception, whatever its text is: a file name in it may be no Unicode, and its `__str__` may fail."""
    try:
        message = cut(str(error), ERROR_TEXT_SIZE_MAX)
    except Exception as unsaid:
        message = f"its message cannot be told: {type(unsaid).__name__}"
    told = message.encode("utf-8", "backslashreplace").decode()
    kind = cut(type(error).__name__, NAME_SHOWN_SIZE_MAX).encode("utf-8", "backslashreplace").decode()
    return encode({"error": {"type": kind, "message": told}})


class Arguments:
    """A function's parameters: checked and encoded by the caller, decoded to their annotations by the worker."""

    def __init__(self, function: Callable[..., Any], path: str, name: str) -> None:
        self._signature = inspect.signature(function)
        hints = _hints(function)
        parameters = list(self._signature.parameters.values())
        by_name = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        self._order = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        self.is_plain = len(by_name) == len(parameters)  # all can be given by name
        self._types = {p.name: hints.get(p.name, Any) for p in parameters}
        # Everything of a body but its arguments: a worker knows by it which function is meant, without reading the JSON.
        self.head = encode(["run", {"path": path, "callable": name, "class_args": [], "class_kwargs": {}}])[:-2]
        self._plain_head = self.head + PLAIN_MARK
        self._shapes: set[tuple[str, ...]] = set()  # names of arguments that were found to fit
        self._decode_kwargs: Callable[[bytes | msgspec.Raw], Any] | None = None
        if self.is_plain:
            fields = [_field(p, self._types[p.name]) for p in by_name]
            shape = msgspec.defstruct("Arguments", fields, forbid_unknown_fields=True, kw_only=True)
            self._decode_kwargs = msgspec.json.Decoder(shape).decode

    def body(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """A request's body; raises TypeError as a direct call with these arguments would, NotFinite for what JSON cannot carry."""
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
        """The arguments of a body that begins with `head` and the mark behind it."""
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
    """A function's result: decoded to its annotation, or raised as what went wrong."""

    def __init__(self, function: Callable[..., Any]) -> None:
        result = _hints(function).get("return", Any)
        fields: list[tuple[str, Any, Any]] = [
            ("value", typing.Union[result, msgspec.UnsetType], msgspec.UNSET),  # noqa: UP007 - `result` is a variable
            ("error", Problem | msgspec.UnsetType, msgspec.UNSET),
        ]
        decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(msgspec.defstruct("Answer", fields))
        self._decode = decoder.decode

    def read(self, value: bytes) -> Any:
        """The result, or an exception that tells why there is none."""
        try:
            answer = self._decode(value)
        except msgspec.DecodeError as error:
            raise problem_of(value, str(error)) from None
        if answer.value is msgspec.UNSET:
            raise problem_of(value, "neither a value nor an error")
        return answer.value


class AnyAnswer(msgspec.Struct):
    """An answer whose value is of no declared type."""

    value: Any = msgspec.UNSET
    error: Problem | msgspec.UnsetType = msgspec.UNSET


_decode_any: Final = msgspec.json.Decoder(AnyAnswer).decode


def problem_of(value: bytes, otherwise: str) -> ClientError:
    """The exception for an answer that is not the result; `otherwise` is what is wrong with a value that came instead."""
    try:
        answer = _decode_any(value)
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
    """The exception for a broker's word that there will be no answer: our own envelope, `CODE: text`, or a worker's bytes."""
    if value.startswith(ERROR_START):
        return problem_of(value, "no answer")
    code, text = _code_and_text(value, "FAILED")
    return Refused(code, text) if code in REFUSALS else JobFailed(code, text)


def refusal_in(value: bytes, otherwise: str = "REFUSED") -> ClientError:
    """The exception for a broker's word that it did not take the work."""
    if value.startswith(ERROR_START):
        return problem_of(value, "not taken")
    return Refused(*_code_and_text(value, otherwise))


def _code_and_text(value: bytes, otherwise: str) -> tuple[str, str]:
    text = value.decode("utf-8", "backslashreplace")[:TEXT_SIZE_MAX]
    code, _, rest = text.partition(":")
    if code and all("A" <= letter <= "Z" or letter == "_" for letter in code):
        return code, rest.strip()
    return otherwise, text or "the broker gives no reason"


def plain_value(value: bytes) -> Any:
    """The value of an answer of any type; raises Refused or JobFailed."""
    try:
        answer = _decode_any(value)
    except msgspec.DecodeError as error:
        raise JobFailed("BadAnswer", str(error)) from None
    if answer.value is msgspec.UNSET:
        raise problem_of(value, "neither a value nor an error")
    return answer.value


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError):
        # Names that exist only for the type checker: the values stay as JSON gives them.
        return {}


def _field(parameter: inspect.Parameter, wanted: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
    if parameter.default is parameter.empty:
        return (parameter.name, wanted)
    default = parameter.default
    return (parameter.name, wanted, msgspec.field(default_factory=lambda: default))
