"""The tree as ZPL, the format of ZeroMQ's RFC 4, which Scale0 calls ZFL.

broker = main                 name, or name = value; # begins a comment
    family = blue             a child: exactly four spaces more
    services = mail           repeated names are a list
        services = "a # b"        quotes of either kind preserve their content; there are no escapes
"""

from __future__ import annotations

from typing import Final

from dragoman.dialects.scale0.configuration.tree import (
    NAME_CHARS,
    Count,
    Node,
    check_name,
    check_value,
    quoted,
    text_of,
    unquoted,
)
from dragoman.errors import BadDocument

INDENT: Final = 4


def parse_zpl(document: bytes) -> Node:
    root = Node()
    branch = [root]  # the path from the root to the last node
    count = Count()
    line = 0
    for raw in text_of(document).split("\n"):
        line += 1
        text = raw[:-1] if raw.endswith("\r") else raw
        bare = text.lstrip(" \t")
        if not bare or bare[0] == "#":
            continue
        depth = depth_of(text[: len(text) - len(bare)], line)
        if depth >= len(branch):
            parent = f"its parent stands at {(len(branch) - 2) * INDENT}" if len(branch) > 1 else "it has no parent"
            raise BadDocument(line, f"indented by {depth * INDENT}: {parent}")
        count.one_more(depth + 1, line)
        del branch[depth + 1 :]
        branch.append(read_property(branch[depth], bare, line))
    return root


def depth_of(indent: str, line: int) -> int:
    if "\t" in indent:
        raise BadDocument(line, "a tab: only spaces indent")
    if len(indent) % INDENT:
        raise BadDocument(line, f"indented by {len(indent)} spaces, which is not a multiple of {INDENT}")
    return len(indent) // INDENT


def read_property(parent: Node, text: str, line: int) -> Node:
    end = 0
    while end < len(text) and text[end] in NAME_CHARS:
        end += 1
    name = text[:end]
    rest = text[end:].lstrip(" ")
    if rest and rest[0] != "=" and rest[0] != "#":
        raise BadDocument(line, f"{rest[0]!r} where the name should end, or go on with = and a value")
    check_name(name, line)
    value: str | None = ""
    if rest and rest[0] == "=":
        value = unquoted(rest[1:])
    if value is None:
        raise BadDocument(line, "something follows the closing quote")
    check_value(value, line)
    return parent.put(name, value)


def write_zpl(tree: Node) -> bytes:
    lines: list[str] = []
    write_children(tree, "", lines)
    return "".join(lines).encode()


def write_children(node: Node, indent: str, lines: list[str]) -> None:
    for name, nodes in node.children.items():
        for child in nodes:
            text = quoted(child.value)
            assert text is not None, "a tree holds only what every notation can say"
            lines.append(f"{indent}{name} = {text}\n" if text else f"{indent}{name}\n")
            write_children(child, indent + " " * INDENT, lines)
