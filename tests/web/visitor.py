"""A browser without a screen: HTTP to a broker's page, with cookies, and the CSRF token of a form read from the page it is on."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

from tests.runtime.daemon import Daemon

ANSWER_S = 30.0


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str:
        return self.headers.get(name) or ""


class Visitor:
    """One browser's worth of cookies. Redirects are the test's to follow."""

    def __init__(self, broker: Daemon) -> None:
        self.host, self.port = broker.place("http")
        self.cookies: dict[str, str] = {}

    @property
    def origin(self) -> str:
        return f"http://{self.host}:{self.port}"

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=ANSWER_S)
        told = dict(headers or {})
        if self.cookies and "Cookie" not in told:
            told["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            connection.request(method, path, body, told)
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        finally:
            connection.close()
        for line in answer.headers.get_all("Set-Cookie") or []:
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def page(self, path: str) -> str:
        """A page that is there."""
        answer = self.get(path)
        assert answer.status == 200, (answer.status, answer.text)
        return answer.text

    def csrf_token(self) -> str:
        """As a form on a page of ours carries it."""
        found = re.search(r'name="csrf_token" value="([0-9a-f]+)"', self.page("/confirm/drain_queue?queue=x"))
        assert found is not None
        return found[1]

    def post(self, path: str, fields: Mapping[str, str] | None = None, **headers: str) -> Answer:
        """As a form of ours does it."""
        told = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.origin}
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", path, urlencode(fields or {}).encode(), told)

    def do(self, path: str, **fields: str) -> Answer:
        return self.post(path, {"csrf_token": self.csrf_token(), **fields})

    def events(self, at: str, count: int) -> list[tuple[str, Any]]:
        """The first events of a page's stream."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=ANSWER_S)
        found: list[tuple[str, Any]] = []
        ends = time.monotonic() + ANSWER_S
        try:
            cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            connection.request("GET", f"/stream?{urlencode({'at': at})}", headers={"Cookie": cookie})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            name = ""
            while len(found) < count and time.monotonic() < ends:
                line = response.readline().decode().rstrip("\n")
                if not line and not name and response.isclosed():
                    break
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    found.append((name, json.loads(line.removeprefix("data: "))))
                    name = ""
        finally:
            connection.close()
        return found
