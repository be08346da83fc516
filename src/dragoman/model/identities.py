"""Conversion between identities and their text form."""

from __future__ import annotations

from typing import Final

from dragoman.model.peer import ANONYMOUS

ESCAPE: Final = "\\x"  # prefix of a byte that is not UTF-8


def client_of(address: str) -> str:
    """The client's identity in the text form of a reply address; empty for an anonymous client (`model/peer.ANONYMOUS`)."""
    return "" if address.startswith(ESCAPE) else address[1:]


def is_client_in(address: bytes, identities: set[bytes]) -> bool:
    """Whether a reply address is that of a client with one of these identities."""
    return len(address) > 1 and address[0] < ANONYMOUS and address[1:] in identities


def identities_of(text: str) -> set[bytes]:
    """The identities that a text may denote: the text itself, bytes as hex digits, and bytes as escapes; none for an empty text."""
    found: set[bytes] = set()
    if not text:
        return found
    found.add(text.encode("utf-8", "surrogateescape"))
    if len(text) % 2 == 0 and not text.strip("0123456789abcdefABCDEF"):
        found.add(bytes.fromhex(text))
    parts = text.split(ESCAPE)
    if len(parts) > 1:
        identity = parts[0].encode("utf-8", "surrogateescape")
        for part in parts[1:]:
            if len(part) < 2 or part[:2].strip("0123456789abcdef"):
                return found
            identity += bytes.fromhex(part[:2]) + part[2:].encode("utf-8", "surrogateescape")
        found.add(identity)
    return found
