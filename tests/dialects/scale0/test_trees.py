"""One configuration tree, three notations: each reads back what it wrote, and refuses what it must."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.scale0.configuration.notations import (
    parse_json,
    parse_xml,
    parse_zpl,
    write_json,
    write_xml,
    write_zpl,
)
from dragoman.dialects.scale0.configuration.tree import NAME_CHARS, Node, quoted
from dragoman.errors import BadDocument

NAMES = st.one_of(
    st.text(alphabet=sorted(NAME_CHARS), min_size=1, max_size=8),
    st.sampled_from(["node", "name", "xml", "services", "a/b", "1", "-", "config"]),
)
VALUES = st.text(" #'\"=ab0<&>]/:\x7f\x85é\u2028\ufffd😀", max_size=8).filter(lambda value: quoted(value) is not None)
NOTATIONS = [(parse_zpl, write_zpl), (parse_xml, write_xml), (parse_json, write_json)]
Parse = Callable[[bytes], Node]
Write = Callable[[Node], bytes]


def node(value: str, children: list[tuple[str, Node]]) -> Node:
    made = Node(value)
    for name, child in children:
        made.add(name, child)
    return made


NODES = st.recursive(
    st.builds(node, VALUES, st.just([])),
    lambda inner: st.builds(node, VALUES, st.lists(st.tuples(NAMES, inner), max_size=4)),
    max_leaves=12,
)
TREES = st.builds(node, st.just(""), st.lists(st.tuples(NAMES, NODES), max_size=4))


@pytest.mark.long
@pytest.mark.parametrize(("parse", "write"), NOTATIONS)
@given(tree=TREES)
def test_whatever_a_tree_holds_comes_back_the_same(parse: Parse, write: Write, tree: Node) -> None:
    assert parse(write(tree)) == tree


@given(tree=TREES)
def test_a_tree_wanders_through_all_three_notations_unchanged(tree: Node) -> None:
    wandered = parse_zpl(write_zpl(parse_xml(write_xml(parse_json(write_json(tree))))))
    assert wandered == tree


@pytest.mark.parametrize("parse", [parse_zpl, parse_xml, parse_json])
@given(document=st.one_of(st.binary(), st.text(alphabet=" \n\t\"'=#ab{}[]<>/&:1,").map(str.encode)))
def test_any_bytes_are_read_or_refused(parse: Parse, document: bytes) -> None:
    try:
        tree = parse(document)
    except BadDocument:
        return
    assert parse_zpl(write_zpl(tree)) == tree


def tree_of(**children: str) -> Node:
    return node("", [(name, Node(value)) for name, value in children.items()])


def test_zpl_is_read_as_rfc_4_says() -> None:
    tree = parse_zpl(
        b"# a comment\n"
        b"broker = main # and another\n"
        b"    services = 'a # b'\n"
        b'    services = "it\'s"\r\n'
        b"\n"
        b"        # indented for no reason\n"
        b"    empty\n"
        b"worker\n"
        b"    identity=w1\n"
    )
    broker = tree.first("broker")
    assert broker.value == "main"
    assert [child.value for child in broker.all("services")] == ["a # b", "it's"]
    assert broker.all("empty") == [Node()]
    assert tree.first("worker").text("identity") == "w1"


def test_a_quote_that_does_not_end_is_part_of_the_value() -> None:
    assert parse_zpl(b"a = 'tis\n").text("a") == "'tis"
    assert parse_zpl(b'a = "open # closed\n').text("a") == '"open'


@pytest.mark.parametrize(
    ("document", "line", "problem"),
    [
        (b"a\n\tb\n", 2, "tab"),
        (b"a\n  b\n", 2, "multiple of 4"),
        (b"a\n        b\n", 2, "indented by 8"),
        (b"    a\n", 1, "indented by 4"),
        (b"a\nb c\n", 2, "where the name should end"),
        (b"a = 'b' c\n", 1, "closing quote"),
        (b"= 1\n", 1, "name is missing"),
        (b"a\n\n# x\nb!\n", 4, "where the name should end"),
        (b"a = b\tc\n", 1, "not every notation"),
        (b"a = \xff\n", 1, "not UTF-8"),
    ],
)
def test_a_wrong_line_of_zpl_is_named(document: bytes, line: int, problem: str) -> None:
    with pytest.raises(BadDocument, match=f"line {line}: .*{problem}") as caught:
        parse_zpl(document)
    assert caught.value.line == line


@pytest.mark.parametrize(
    "document",
    [
        b"<!DOCTYPE config><config/>",
        b"<!DOCTYPE config SYSTEM 'file:///etc/passwd'><config/>",
        b"<!DOCTYPE c [<!ENTITY a 'b'>]><c>&a;</c>",
        b"<!DOCTYPE c [<!ENTITY % a SYSTEM 'http://127.0.0.1/'> %a;]><c/>",
        b"<config><a>&b;</a></config>",
    ],
)
def test_xml_with_a_dtd_or_an_entity_is_refused(document: bytes) -> None:
    with pytest.raises(BadDocument):
        parse_xml(document)


def test_xml_attributes_are_children_and_the_roots_name_is_free() -> None:
    tree = parse_xml(
        b'<scale0 family="blue"><worker identity="w1">\n  main\n  <services>mail</services></worker></scale0>'
    )
    worker = tree.first("worker")
    assert tree.text("family") == "blue"
    assert (worker.value, worker.text("identity"), worker.text("services")) == ("main", "w1", "mail")


@pytest.mark.parametrize("document", [b"<a>x</a>", b"<a><b>x<c/>y</b></a>", b"<a><b:c/></a>", b"<a>", b"", b"<a/><b/>"])
def test_xml_that_says_no_tree_is_refused(document: bytes) -> None:
    with pytest.raises(BadDocument):
        parse_xml(document)


def test_json_numbers_and_words_become_texts() -> None:
    tree = parse_json(b'{"a": 1.50, "b": [true, null, "x"], "c": {"=": "v", "d": 1e3}}')
    assert tree.text("a") == "1.50"
    assert [child.value for child in tree.all("b")] == ["true", "", "x"]
    assert (tree.first("c").value, tree.first("c").text("d")) == ("v", "1e3")


@pytest.mark.parametrize(
    "document",
    [b"[]", b'"a"', b'{"=": "x"}', b'{"a": [[1]]}', b'{"a b": 1}', b'{"a": "\\n"}', b"{", b"[" * 100_000, b'{"a":' * 40 + b"1" + b"}" * 40],
)  # fmt: skip
def test_json_that_says_no_tree_is_refused(document: bytes) -> None:
    with pytest.raises(BadDocument):
        parse_json(document)


@pytest.mark.parametrize("parse", [parse_zpl, parse_xml, parse_json])
def test_a_document_over_the_limit_is_refused_unread(parse: Parse) -> None:
    with pytest.raises(BadDocument, match="at most"):
        parse(b" " * (1024 * 1024 + 1))


def test_what_zpl_cannot_quote_is_refused_in_every_notation() -> None:
    """`#` needs quotes, and both kinds are taken: no worker that asked for ZFL could be told."""
    for parse, document in ((parse_json, b'{"a": "\'\\"#"}'), (parse_xml, b"<c><a>'\"#</a></c>")):
        with pytest.raises(BadDocument, match="both kinds"):
            parse(document)


def test_plain_trees_look_plain() -> None:
    tree = tree_of(identity="w1", services="mail")
    assert write_zpl(tree) == b"identity = w1\nservices = mail\n"
    assert b"<identity>w1</identity>" in write_xml(tree)
    assert write_json(tree) == b'{\n  "identity": "w1",\n  "services": "mail"\n}'


@pytest.mark.parametrize("encoding", [b"x-unheard-of", b"shift_jis", b"utf-7", b"base64"])
def test_xml_in_an_encoding_that_cannot_be_read_is_refused(encoding: bytes) -> None:
    with pytest.raises(BadDocument):
        parse_xml(b'<?xml version="1.0" encoding="%s"?><a><b>1</b></a>' % encoding)
