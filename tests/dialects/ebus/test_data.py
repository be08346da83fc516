"""The broker's own data, byte for byte as the original packs it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.ebus.data import pack, reject_data, text_in
from dragoman.model.enums import PAST_EXPIRY, WORKERS_DIED
from tests.dialects.ebus.in_memory import unpack

VALUES = st.recursive(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.integers(-(2**63), 2**63 - 1),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4)
    ),
    max_leaves=10,
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (["hello"], "789c9362606060c9611002524c060c6c402a233527271f4803001cb102e9"),
        (
            {"ebusmessage": "active workers", "workers": ["hello"]},
            (
                "789cf360606060ce617000524ca949a5c5b9a9c5c589e9a90cfc4081c4e492ccb25485f2fca2ecd4a26206161843"
                "08a4d880810d4865a4e6e4e403690600749d10b5"
            ),
        ),
        (
            {"ebusmessage": "broker stopping"},
            "789cd363606060ce615003524ca949a5c5b9a9c5c589e9a90c024081a4a2fcecd42285e292fc8282ccbc74a00800e9350b83",
        ),
    ],
)
def test_the_recorded_messages_of_the_original_are_encoded_to_the_same_bytes(value: object, data: str) -> None:
    assert pack(value, False).hex() == data


@given(VALUES, st.booleans())
def test_what_is_packed_is_what_is_read(value: object, is_json: bool) -> None:
    if is_json and not isinstance(value, list | dict | str):
        return
    assert unpack(pack(value, is_json)) == value


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200), st.booleans())
def test_a_text_of_ours_is_found_again_in_either_form(text: str, is_json: bool) -> None:
    assert text_in(pack(text, is_json)) == text.encode()


@given(st.binary(max_size=200))
def test_data_that_is_not_ours_is_left_as_it_is(data: bytes) -> None:
    for first in (b"\x78", b"{", b"n"):
        assert text_in(first + data) == first + data


@pytest.mark.parametrize("value", [["a"], {"why": "bad"}, 7, "x" * 5000])
def test_data_with_something_else_than_one_short_text_is_left_as_it_is(value: object) -> None:
    data = pack(value, False)
    assert text_in(data) == data


def test_only_what_expired_is_rejected_without_a_word() -> None:
    assert reject_data(PAST_EXPIRY, b"", False) == b""
    assert text_in(reject_data(WORKERS_DIED, b"", False)) == b"WORKERS_DIED: workers died"
    assert reject_data(WORKERS_DIED, b"the worker's own", False) == b"the worker's own"
