"""The tree as XML: a node is an element, its value the text before its first child. DTDs and entity declarations are refused before they
have any effect.

Accepted when reading, but not written: an attribute is a child with a value, and the root may have any name. A name that XML does not
allow is written as `<node name="a/b">`; spaces around a value are kept with `xml:space="preserve"`, else dropped.
"""

from __future__ import annotations

from typing import Final, final
from xml.parsers import expat

from dragoman.dialects.scale0.configuration.tree import NAME_CHARS, Count, Node, check_name, check_size, check_value
from dragoman.errors import BadDocument

ROOT: Final = "config"
STAND_IN: Final = "node"
SPACE: Final = "xml:space"
BLANK: Final = " \t\r\n"
FIRST_CHARS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
LATER_CHARS: Final = NAME_CHARS - frozenset("$@&+/")


def parse_xml(document: bytes) -> Node:
    check_size(document)
    reading = Reading()
    try:
        reading.parser.Parse(document, True)
    except expat.ExpatError as error:
        raise BadDocument(error.lineno, f"not XML: {expat.ErrorString(error.code)}") from error
    except (LookupError, ValueError) as error:  # an encoding that does not exist, or that expat does not support
        raise BadDocument(1, f"not XML that can be read: {error}") from error
    return reading.root


@final
class Reading:
    """The parser state of one document."""

    def __init__(self) -> None:
        self.root = Node()
        self.count = Count()
        self.open: list[Node] = []
        self.texts: list[str] = []  # of each open element, since its start or its last child
        self.is_settled: list[bool] = []  # whether its value is complete
        self.kept: list[bool] = []  # whether spaces around its value are kept
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self.on_doctype
        self.parser.EntityDeclHandler = self.on_entity
        self.parser.ExternalEntityRefHandler = self.on_outside
        self.parser.StartElementHandler = self.on_start
        self.parser.EndElementHandler = self.on_end
        self.parser.CharacterDataHandler = self.on_text

    def line(self) -> int:
        return self.parser.CurrentLineNumber

    def on_doctype(self, name: object, system_id: object, public_id: object, has_subset: object) -> None:
        raise BadDocument(self.line(), "a DTD: there is none here")

    def on_entity(
        self,
        name: object,
        is_parameter: object,
        value: object,
        base: object,
        system_id: object,
        public_id: object,
        notation: object,
    ) -> None:
        raise BadDocument(self.line(), "an entity: there are none here")

    def on_outside(self, context: object, base: object, system_id: object, public_id: object) -> int:
        raise BadDocument(self.line(), "an entity from elsewhere: there are none here")

    def on_start(self, name: str, attributes: dict[str, str]) -> None:
        line = self.line()
        self.count.one_more(len(self.open), line)
        if not self.open:
            node = self.root
        else:
            if name == STAND_IN and "name" in attributes:
                name = attributes.pop("name")
            check_name(name, line)
            self.settle_text()
            node = self.open[-1].put(name, "")
        self.open.append(node)
        self.texts.append("")
        self.is_settled.append(False)
        self.kept.append(attributes.pop(SPACE, "") == "preserve")
        for key, value in attributes.items():
            self.count.one_more(len(self.open), line)
            check_name(key, line)
            check_value(value, line)
            node.put(key, value)

    def on_end(self, name: str) -> None:
        self.settle_text()
        del self.open[-1], self.texts[-1], self.is_settled[-1], self.kept[-1]

    def on_text(self, text: str) -> None:
        self.texts[-1] += text

    def settle_text(self) -> None:
        """End the text of the innermost element: at its first child, or at its end."""
        text = self.texts[-1]
        self.texts[-1] = ""
        is_late = self.is_settled[-1]
        self.is_settled[-1] = True
        if is_late or len(self.open) == 1:
            if text.strip(BLANK):
                raise BadDocument(self.line(), "a text behind a child element, or in the root itself")
            return
        if not self.kept[-1]:
            text = text.strip(BLANK)
        check_value(text, self.line())
        self.open[-1].value = text


def write_xml(tree: Node) -> bytes:
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n', f"<{ROOT}>"]
    write_children(tree, "\n  ", parts)
    parts.append(f"\n</{ROOT}>\n" if tree.children else f"</{ROOT}>\n")
    return "".join(parts).encode()


def write_children(node: Node, indent: str, parts: list[str]) -> None:
    for name, nodes in node.children.items():
        is_plain = name != STAND_IN and is_xml_name(name)
        tag = name if is_plain else STAND_IN
        start = name if is_plain else f'{STAND_IN} name="{escaped(name)}"'
        for child in nodes:
            value = child.value
            if value.strip(BLANK) != value:
                parts.append(f'{indent}<{start} {SPACE}="preserve">{escaped(value)}')
            elif value or child.children:
                parts.append(f"{indent}<{start}>{escaped(value)}")
            else:
                parts.append(f"{indent}<{start}/>")
                continue
            if child.children:
                # No spaces between a value and the first child: with xml:space they would be part of it.
                inner = indent + "  " if not value else ""
                write_children(child, inner, parts)
            parts.append(f"{indent}</{tag}>" if child.children and not value else f"</{tag}>")


def is_xml_name(name: str) -> bool:
    if name[0] not in FIRST_CHARS or name.lower().startswith("xml"):
        return False
    return all(char in LATER_CHARS for char in name)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
