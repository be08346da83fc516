"""Identities as people see and type them."""

from __future__ import annotations

from typing import Final

ESCAPE: Final = "\\x"  # how a byte that is no UTF-8 is shown


def client_of(address: str) -> str:
    """The client's identity in a reply address as it is shown; empty for one that gave none (`model/peer.ANONYMOUS`)."""
    return "" if address.startswith(ESCAPE) else address[1:]


def identities_of(text: str) -> set[bytes]:
    """The identities that a text may stand for: itself, hex digits, and bytes that are shown as escapes; none for no text."""
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
