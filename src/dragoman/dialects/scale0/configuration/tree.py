"""The configuration tree that Scale0 negotiates, independent of the format.

A node has a value (a text, often empty) and children by name; a name may occur several times. Invariant: every tree can be written in all
three formats, ZFL, XML and JSON, and is the same when read back. So names and values are restricted here, and a document that violates the
restrictions is refused when it is read.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.errors import BadDocument
from dragoman.limits import TREE_DEPTH_MAX, TREE_NODES_MAX, TREE_SIZE_MAX

NAME_CHARS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789$-_@.&+/")


@final
class Node:
    """One node. The order of children matters only within one name: JSON could not preserve it between names."""

    def __init__(self, value: str = "") -> None:
        self.value = value
        self.children: dict[str, list[Node]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.value == other.value and self.children == other.children

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"Node({self.value!r}, {self.children!r})"

    def add(self, name: str, child: Node) -> Node:
        """Append a child; returns it."""
        self.children.setdefault(name, []).append(child)
        return child

    def put(self, name: str, value: str) -> Node:
        return self.add(name, Node(value))

    def all(self, name: str) -> list[Node]:
        return self.children.get(name, [])

    def first(self, name: str) -> Node:
        """The first child with a name; an empty node when there is none."""
        found = self.children.get(name)
        return found[0] if found else Node()

    def text(self, name: str) -> str:
        return self.first(name).value

    def texts(self, name: str) -> list[str]:
        """The values of all children with a name; one value may contain several, separated by commas."""
        found: list[str] = []
        for child in self.all(name):
            for part in child.value.split(","):
                text = part.strip()
                if text and text not in found:
                    found.append(text)
        return found


@final
class Count:
    """Limits the number and depth of a document's entries while it is read."""

    def __init__(self) -> None:
        self.nodes: int = 0

    def one_more(self, depth: int, line: int) -> None:
        self.nodes += 1
        if self.nodes > TREE_NODES_MAX:
            raise BadDocument(line, f"more than {TREE_NODES_MAX} entries")
        if depth > TREE_DEPTH_MAX:
            raise BadDocument(line, f"nested deeper than {TREE_DEPTH_MAX}")


def check_size(document: bytes) -> None:
    if len(document) > TREE_SIZE_MAX:
        raise BadDocument(0, f"a document of {len(document)} bytes; at most {TREE_SIZE_MAX} are read")


def text_of(document: bytes) -> str:
    """Decode a document; raises when it is too long or not UTF-8."""
    check_size(document)
    try:
        return document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = document[: error.start].count(b"\n") + 1
        raise BadDocument(line, "the text is not UTF-8") from error


def check_name(name: str, line: int) -> None:
    if not name:
        raise BadDocument(line, "a name is missing")
    for char in name:
        if char not in NAME_CHARS:
            raise BadDocument(
                line, f"the name {excerpt(name)} holds {char!r}: letters, digits and $-_@.&+/ are allowed"
            )


def check_value(value: str, line: int) -> None:
    for char in value:
        if char < " " or char in "\ufffe\uffff" or 0xD800 <= ord(char) <= 0xDFFF:
            raise BadDocument(line, f"the value {excerpt(value)} holds {char!r}, which not every notation can say")
    if quoted(value) is None:
        raise BadDocument(line, f"the value {excerpt(value)} needs quotes in ZFL and holds both kinds")


def excerpt(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def quoted(value: str) -> str | None:
    """A value in ZFL: plain if that reads back the same, else in the quotes that it does not contain; None: it cannot be expressed."""
    for text in (value, f'"{value}"', f"'{value}'"):
        if unquoted(text) == value:
            return text
    return None


def unquoted(text: str) -> str | None:
    """The value in the text after `=`; None when something follows a closing quote. ZPL's rules: no escapes, a quote that is not closed is
    part of the value, `#` begins a comment outside quotes."""
    text = text.strip(" ")
    if text and (text[0] == '"' or text[0] == "'"):
        end = text.find(text[0], 1)
        if end > 0:
            rest = text[end + 1 :].strip(" ")
            return text[1:end] if not rest or rest[0] == "#" else None
    comment = text.find("#")
    return text if comment < 0 else text[:comment].rstrip(" ")
