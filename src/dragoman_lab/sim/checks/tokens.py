"""Tokens: each request has one in its body and its reply repeats it, in every dialect.

So a reply identifies its request by itself, and so does a message among the facts.
"""

from __future__ import annotations

import json
import re

TOKEN = re.compile(rb"(?<![a-z])[a-z]+[0-9]*~[0-9]{4}")
MARK = b"~"
BEFORE_MARK, BEHIND_MARK = 8, 5  # bytes of a token on either side


def token(owner: str, count: int) -> str:
    return f"{owner}~{count:04d}"


def body_of(token: str, fill_size: int) -> bytes:
    """A job that the original's eMQP workers can parse, and all other workers, too."""
    return json.dumps(["run", {"token": token, "fill": "x" * fill_size}]).encode()


def tokens_in(data: bytes) -> set[str]:
    """The tokens in the data. Searches only around the mark: bodies are large, and most of their bytes are filling."""
    found = set()
    at = data.find(MARK)
    while at >= 0:
        match = TOKEN.search(data, max(at - BEFORE_MARK, 0), at + BEHIND_MARK)
        if match is not None:
            found.add(match[0].decode())
        at = data.find(MARK, at + 1)
    return found


def token_in(data: bytes) -> str:
    """The token in a body; empty for messages outside the ledger (a schedule's job, a rude peer's)."""
    return min(tokens_in(data), default="")
