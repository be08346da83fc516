"""The tree as JSON: an object of names. A leaf is its value, a repeated name an array, a node with children an object; the node's own
value, if it has one too, is in that object under `=`, which is not a valid node name.

Numbers, true, false and null are accepted when reading; they become the texts `1.5`, `true`, `false` and the empty text.
"""

from __future__ import annotations

import json
from typing import Final

from dragoman.dialects.scale0.configuration.tree import Count, Node, check_name, check_value, text_of
from dragoman.errors import BadDocument

OWN_VALUE: Final = "="


def parse_json(document: bytes) -> Node:
    try:
        value: object = json.loads(text_of(document), parse_int=str, parse_float=str, parse_constant=str)
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


def write_json(tree: Node) -> bytes:
    return json.dumps(members_of(tree), ensure_ascii=False, indent=2).encode()


def members_of(node: Node) -> dict[str, object]:
    members: dict[str, object] = {}
    if node.value:
        members[OWN_VALUE] = node.value
    for name, nodes in node.children.items():
        items = [members_of(child) if child.children else child.value for child in nodes]
        members[name] = items[0] if len(items) == 1 else items
    return members
