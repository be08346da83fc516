"""Looking into JSON where the json form itself puts a meaning there. Bodies pass as they are; nothing is written anew."""

from __future__ import annotations

from typing import Final

import msgspec

OBJECTS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def read_object(frame: bytes) -> dict[str, bytes] | None:
    """The fields of a JSON object, each as its own JSON; None when it is none."""
    if frame[:1] != b"{":
        return None
    try:
        fields = OBJECTS.decode(frame)
        return {name: bytes(value).strip() for name, value in fields.items()}
    except (ValueError, RecursionError):  # msgspec's own errors and those of UTF-8 are ValueErrors
        return None


def text_of(value: bytes) -> bytes:
    """A field's value as others see it: a string becomes its text, all else stays JSON."""
    if value[:1] == b'"':
        try:
            text: object = msgspec.json.decode(value)
        except ValueError:
            return value
        if isinstance(text, str):
            return text.encode("utf-8", "surrogatepass")
    return value


def is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return False
    return True


def is_text(body: bytes) -> bool:
    """Whether the json form can carry it."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def as_json(body: bytes) -> bytes:
    """A body inside JSON: as it is when it is JSON, else as a string. It must be text."""
    return body if is_json(body) else msgspec.json.encode(body.decode())


def work_of(token: bytes, body: bytes) -> bytes:
    return b'{"status":"WORK","token":"%s","job":%s}' % (token, as_json(body))


def message_of(value: bytes) -> bytes:
    return b'{"msg":%s}' % as_json(value)


def error_of(reason: bytes) -> bytes:
    return b'{"msg":"ERROR","reason":%s}' % msgspec.json.encode(reason.decode("utf-8", "replace"))
