"""Reading of submitted forms: limits on size and fields, and the check of the CSRF token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request

FORM_SIZE_MAX: Final = 64 * 1024
FIELDS_MAX: Final = 200
SEAL: Final = "seal"


class BadForm(Exception):
    """A form that is not accepted: the sentence for its sender, and the HTTP status."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


async def read_form(request: Request) -> Mapping[str, str]:
    """Read the form's fields; of a repeated field the last value counts."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_SIZE_MAX:
            raise BadForm(413, f"a form has at most {FORM_SIZE_MAX} bytes")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="replace")
    except (ValueError, UnicodeDecodeError) as error:
        raise BadForm(400, "the form cannot be read") from error
    return dict(pairs)


def check_seal(request: Request, form: Mapping[str, str]) -> None:
    state: Any = request.state
    if state.is_bearer:
        return
    if not request.app.state.seals.is_form_seal(state.session, form.get(SEAL, "")):
        raise BadForm(
            403, "the form is not ours, or older than this broker's start: go back, load the page again, and repeat"
        )


def our_path(text: str) -> str:
    """The path to redirect to after an action: a local path, or the overview if the text is not one."""
    is_ours = text.startswith("/") and not text.startswith("//") and "\\" not in text and text.isprintable()
    return text if is_ours and text.isascii() else "/"
