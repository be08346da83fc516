"""The settings of section `otel`: what they take, and that their secret stays one."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.runtime.config import load, render_toml
from dragoman.runtime.config.sources import Flags


def loaded(*settings: str) -> Any:
    return load(flags=Flags(settings=settings)).otel


@pytest.mark.parametrize(
    "text",
    ["http://127.0.0.1:4318", "https://collector.example", "https://collector.example/otlp/", "http://[::1]:4318"],
)
def test_an_address_of_http_is_taken(text: str) -> None:
    assert loaded(f"otel.endpoint={text}").endpoint == text


@pytest.mark.parametrize(
    "text",
    ["127.0.0.1:4318", "ftp://x", "http://", "http://x:port", "http://x:0", "http://me:secret@x", "http://x/?a=b", "http://x/#a", "http://x\ny", "http://bücher.example", "http://x/ä", "http://a b", "http://x/a b"],
)  # fmt: skip
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"otel\.endpoint: expected an address such as"):
        loaded(f"otel.endpoint={text}")


@pytest.mark.parametrize(("text", "ratio"), [("0", 0.0), ("1", 1.0), ("0.25", 0.25)])
def test_a_share_is_a_number_from_0_to_1(text: str, ratio: float) -> None:
    assert loaded(f"otel.sample_ratio={text}").sample_ratio == ratio


@pytest.mark.parametrize("text", ["-0.1", "1.1", "nan", "half", ""])
def test_any_other_share_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected a number from 0 to 1"):
        loaded(f"otel.sample_ratio={text}")


def test_headers_are_pairs_and_shown_to_nobody() -> None:
    config = load(flags=Flags(settings=("otel.headers=api-key=s3cr3t=x, Tenant = 7",)))
    assert config.otel.headers == (("api-key", "s3cr3t=x"), ("Tenant", "7"))
    assert "s3cr3t" not in render_toml(config) + str(config.sources)


@pytest.mark.parametrize("text", ["s3cr3t", "a b=s3cr3t", "a=s3cr3t\r\nHost: x", "a=s3cr3té"])
def test_a_header_that_cannot_be_sent_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ConfigError, match="expected a secret text") as failure:
        loaded(f"otel.headers={text}")
    assert "s3cr3t" not in str(failure.value)
