"""Parses JSON where the json form itself defines its content. Bodies are passed on unchanged, never re-encoded."""

from __future__ import annotations

from typing import Final

import msgspec

from dragoman.limits import JSON_READ_SIZE_MAX

# Bytes that must be escaped in a JSON string.
ESCAPED: Final = bytes(range(32)) + b'"\\'
# At most this fraction of a large text may need escaping.
ESCAPED_PART: Final = 8
NO_TEXT: Final = 0
PLAIN_TEXT: Final = 1
JSON_TEXT: Final = 2
ANYTHING: Final = msgspec.json.Decoder(msgspec.Raw)
OBJECTS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def read_object(frame: bytes) -> dict[str, bytes] | None:
    """The fields of a JSON object, each as its own JSON; None when the frame is not an object."""
    if frame[:1] != b"{":
        return None
    try:
        fields = OBJECTS.decode(frame)
        return {name: bytes(value).strip() for name, value in fields.items()}
    except (ValueError, RecursionError):  # msgspec's errors and those of UTF-8 decoding are ValueErrors
        return None


def text_of(value: bytes) -> bytes:
    """A field's value for other dialects: a string becomes its text, everything else stays JSON."""
    if value[:1] == b'"':
        if b"\\" not in value and is_text(value):
            return value[1:-1]
        try:
            text: object = msgspec.json.decode(value)
        except ValueError:
            return value
        if isinstance(text, str):
            return text.encode("utf-8", "surrogatepass")
    return value


def is_json(body: bytes) -> bool:
    """Whether a text is JSON. It is not decoded to objects: a list of a million numbers takes long to build."""
    try:
        ANYTHING.decode(body)
    except (ValueError, RecursionError):
        return False
    return True


def is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def form_of(body: bytes) -> int:
    """Whether and how the json form can carry a body. A large text that needs much escaping would grow up to six times, which takes long: it
    counts as NO_TEXT."""
    if not is_text(body):
        return NO_TEXT
    if is_json(body):
        return JSON_TEXT
    if len(body) > JSON_READ_SIZE_MAX and len(body) - len(body.translate(None, ESCAPED)) > len(body) // ESCAPED_PART:
        return NO_TEXT
    return PLAIN_TEXT


def as_json(body: bytes, form: int) -> bytes:
    """A body inside JSON: unchanged if it is JSON, else as a string. It must be text."""
    return body if form == JSON_TEXT else msgspec.json.encode(body.decode())


def work_of(token: bytes, body: bytes, form: int) -> bytes:
    return b'{"status":"WORK","token":"%s","job":%s}' % (token, as_json(body, form))


def error_of(reason: bytes) -> bytes:
    return b'{"msg":"ERROR","reason":%s}' % msgspec.json.encode(reason.decode("utf-8", "replace"))
