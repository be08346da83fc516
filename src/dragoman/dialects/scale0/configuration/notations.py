"""The three notations of the configuration tree.

JSON: an object of names. A leaf is its value, a repeated name an array, a node with children an object; the node's own value, if it has
one too, is in that object under `=`, which is not a valid node name. Numbers, true, false and null are accepted when reading; they become
the texts `1.5`, `true`, `false` and the empty text.

XML: a node is an element, its value the text before its first child. DTDs and entity declarations are refused before they have any effect.
A name that XML does not allow is written as `<node name="a/b">`; spaces around a value are preserved with `xml:space="preserve"`, else
dropped. Accepted when reading, but not written: an attribute is a child with a value, and the root may have any name.

ZPL, the format of ZeroMQ's RFC 4, which Scale0 calls ZFL:

    broker = main                 name, or name = value; # begins a comment
        family = blue             a child: exactly four spaces more
        services = mail           repeated names are a list
        services = "a # b"        quotes of either kind preserve their content; there are no escapes
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Final, final
from xml.parsers import expat
from xml.sax.saxutils import escape

from dragoman.dialects.scale0.configuration import tree
from dragoman.dialects.scale0.configuration.tree import NAME_CHARS, Count, Node, check_name, check_value
from dragoman.errors import BadDocument

JSON: Final = b"JSON"
XML: Final = b"XML"
ZFL: Final = b"ZFL"
ZPL: Final = b"ZPL"

OWN_VALUE: Final = "="  # in JSON

# In XML.
ROOT: Final = "config"
STAND_IN: Final = "node"
SPACE: Final = "xml:space"
BLANK: Final = " \t\r\n"
FIRST_CHARS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
LATER_CHARS: Final = NAME_CHARS - frozenset("$@&+/")
QUOTE: Final = {'"': "&quot;"}

INDENT: Final = 4  # in ZPL


def parse_json(document: bytes) -> Node:
    try:
        value: object = json.loads(tree.text_of(document), parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise BadDocument(error.lineno, f"not JSON: {error.msg}") from error
    except RecursionError as error:
        raise BadDocument(0, "nested too deep") from error
    if not isinstance(value, dict):
        raise BadDocument(0, "a configuration in JSON is an object")
    root = Node()
    read_members(root, value, 1, Count())
    if root.value:
        raise BadDocument(0, f"the whole has no value of its own: leave {OWN_VALUE!r} out")
    return root


def read_members(node: Node, members: dict[str, object], depth: int, count: Count) -> None:
    for name, value in members.items():
        if name == OWN_VALUE:
            node.value = read_text(value)
            continue
        check_name(name, 0)
        if isinstance(value, list):
            for item in value:
                read_node(node, name, item, depth, count)
        else:
            read_node(node, name, value, depth, count)


def read_node(parent: Node, name: str, value: object, depth: int, count: Count) -> None:
    count.one_more(depth, 0)
    if isinstance(value, dict):
        read_members(parent.put(name, ""), value, depth + 1, count)
    else:
        parent.put(name, read_text(value))


def read_text(value: object) -> str:
    text = ""
    if isinstance(value, str):
        text = value
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif value is not None:
        raise BadDocument(0, "an array inside an array, or in place of a value")
    check_value(text, 0)
    return text


def write_json(root: Node) -> bytes:
    return json.dumps(members_of(root), ensure_ascii=False, indent=2).encode()


def members_of(node: Node) -> dict[str, object]:
    members: dict[str, object] = {}
    if node.value:
        members[OWN_VALUE] = node.value
    for name, nodes in node.children.items():
        items = [members_of(child) if child.children else child.value for child in nodes]
        members[name] = items[0] if len(items) == 1 else items
    return members


def parse_xml(document: bytes) -> Node:
    tree.check_size(document)
    reading = XmlReading()
    try:
        reading.parser.Parse(document, True)
    except expat.ExpatError as error:
        raise BadDocument(error.lineno, f"not XML: {expat.ErrorString(error.code)}") from error
    except (LookupError, ValueError) as error:  # an encoding that does not exist, or that expat does not support
        raise BadDocument(1, f"not XML that can be read: {error}") from error
    return reading.root


@final
class XmlReading:
    """The parser state of one document."""

    def __init__(self) -> None:
        self.root = Node()
        self.count = Count()
        self.open: list[Node] = []
        self.texts: list[str] = []  # of each open element, since its start or its last child
        self.is_complete: list[bool] = []  # whether its value is complete
        self.preserves: list[bool] = []  # whether spaces around its value are part of it
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = partial(self.refuse, "a DTD: there is none here")
        self.parser.EntityDeclHandler = partial(self.refuse, "an entity: there are none here")
        self.parser.ExternalEntityRefHandler = partial(self.refuse, "an entity from elsewhere: there are none here")
        self.parser.StartElementHandler = self.on_start
        self.parser.EndElementHandler = self.on_end
        self.parser.CharacterDataHandler = self.on_text

    def line(self) -> int:
        return self.parser.CurrentLineNumber

    def refuse(self, problem: str, *_: object) -> int:
        raise BadDocument(self.line(), problem)

    def on_start(self, name: str, attributes: dict[str, str]) -> None:
        line = self.line()
        self.count.one_more(len(self.open), line)
        if not self.open:
            node = self.root
        else:
            if name == STAND_IN and "name" in attributes:
                name = attributes.pop("name")
            check_name(name, line)
            self.complete_text()
            node = self.open[-1].put(name, "")
        self.open.append(node)
        self.texts.append("")
        self.is_complete.append(False)
        self.preserves.append(attributes.pop(SPACE, "") == "preserve")
        for key, value in attributes.items():
            self.count.one_more(len(self.open), line)
            check_name(key, line)
            check_value(value, line)
            node.put(key, value)

    def on_end(self, name: str) -> None:
        self.complete_text()
        del self.open[-1], self.texts[-1], self.is_complete[-1], self.preserves[-1]

    def on_text(self, text: str) -> None:
        self.texts[-1] += text

    def complete_text(self) -> None:
        """End the text of the innermost element: at its first child, or at its end."""
        text = self.texts[-1]
        self.texts[-1] = ""
        is_late = self.is_complete[-1]
        self.is_complete[-1] = True
        if is_late or len(self.open) == 1:
            if text.strip(BLANK):
                raise BadDocument(self.line(), "a text behind a child element, or in the root itself")
            return
        if not self.preserves[-1]:
            text = text.strip(BLANK)
        check_value(text, self.line())
        self.open[-1].value = text


def write_xml(root: Node) -> bytes:
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n', f"<{ROOT}>"]
    write_elements(root, "\n  ", parts)
    parts.append(f"\n</{ROOT}>\n" if root.children else f"</{ROOT}>\n")
    return "".join(parts).encode()


def write_elements(node: Node, indent: str, parts: list[str]) -> None:
    for name, nodes in node.children.items():
        is_plain = name != STAND_IN and is_xml_name(name)
        tag = name if is_plain else STAND_IN
        start = name if is_plain else f'{STAND_IN} name="{escape(name, QUOTE)}"'
        for child in nodes:
            value = child.value
            if value.strip(BLANK) != value:
                parts.append(f'{indent}<{start} {SPACE}="preserve">{escape(value, QUOTE)}')
            elif value or child.children:
                parts.append(f"{indent}<{start}>{escape(value, QUOTE)}")
            else:
                parts.append(f"{indent}<{start}/>")
                continue
            if child.children:
                # No spaces between a value and the first child: with xml:space they would be part of it.
                inner = indent + "  " if not value else ""
                write_elements(child, inner, parts)
            parts.append(f"{indent}</{tag}>" if child.children and not value else f"</{tag}>")


def is_xml_name(name: str) -> bool:
    if name[0] not in FIRST_CHARS or name.lower().startswith("xml"):
        return False
    return all(char in LATER_CHARS for char in name)


def parse_zpl(document: bytes) -> Node:
    root = Node()
    branch = [root]  # the path from the root to the last node
    count = Count()
    line = 0
    for raw in tree.text_of(document).split("\n"):
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
        value = tree.unquoted(rest[1:])
    if value is None:
        raise BadDocument(line, "something follows the closing quote")
    check_value(value, line)
    return parent.put(name, value)


def write_zpl(root: Node) -> bytes:
    lines: list[str] = []
    write_properties(root, "", lines)
    return "".join(lines).encode()


def write_properties(node: Node, indent: str, lines: list[str]) -> None:
    for name, nodes in node.children.items():
        for child in nodes:
            text = tree.quoted(child.value)
            assert text is not None, "a tree holds only what every notation can say"
            lines.append(f"{indent}{name} = {text}\n" if text else f"{indent}{name}\n")
            write_properties(child, indent + " " * INDENT, lines)


PARSERS: Final[dict[bytes, Callable[[bytes], Node]]] = {JSON: parse_json, XML: parse_xml, ZFL: parse_zpl}
WRITERS: Final[dict[bytes, Callable[[Node], bytes]]] = {JSON: write_json, XML: write_xml, ZFL: write_zpl}


def type_named(name: bytes) -> bytes:
    """The canonical name of a `config_type`; empty when it is unknown. The default is JSON."""
    name = name.upper() or JSON
    if name == ZPL:
        return ZFL
    return name if name in PARSERS else b""


def parse(config_type: bytes, document: bytes) -> Node:
    return PARSERS[config_type](document)


def write(config_type: bytes, root: Node) -> bytes:
    return WRITERS[config_type](root)
