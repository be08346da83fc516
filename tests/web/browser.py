"""Debian's chromium, driven headless: what a person sees, and what it cost to show it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.waiting import wait_for

SHOTS_VARIABLE = "DRAGOMAN_SCREENSHOTS"  # a directory that is kept
LOAD_S = 60.0
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
)


class Browser:
    """One window on one broker."""

    def __init__(self, driver: Chrome, origin: str, shots: Path) -> None:
        self.driver, self.origin, self.shots = driver, origin, shots

    def open(self, path: str) -> None:
        self.driver.get(self.origin + path)

    def resize(self, width: int, height: int) -> None:
        """The page's own size, not the window's: a headless window has a smallest width."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )

    def colours(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def shoot(self, name: str) -> None:
        height = self.js("return document.documentElement.scrollHeight")
        width = self.js("return document.documentElement.clientWidth")
        self.resize(width, min(max(height, 400), 3000))
        self.driver.save_screenshot(str(self.shots / f"{name}.png"))

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, css: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def text(self, css: str = "main") -> str:
        return str(self.js("return document.querySelector(arguments[0]).innerText", css))

    def press(self, label: str) -> None:
        """A button or link by its accessible name, as a person finds it; it may be redrawn under our finger."""

        def is_pressed() -> bool:
            return bool(
                self.js(
                    "const found = [...document.querySelectorAll('a, button')].find(e => (e.ariaLabel || e.innerText.trim()) === arguments[0]);"
                    "if (found) found.click(); return Boolean(found)",
                    label,
                )
            )

        wait_for(f"something called {label!r} to press", is_pressed, LOAD_S)

    def wait_text(self, text: str, css: str = "main") -> None:
        def is_there() -> bool:
            found = self.js("return document.querySelector(arguments[0])?.innerText ?? ''", css)
            return text in str(found)

        wait_for(f"{text!r} on {self.driver.current_url}", is_there, LOAD_S)

    def wait_beats(self, count: int) -> None:
        """So many updates by the stream."""
        wait_for(f"{count} updates", lambda: int(self.js("return document.body.dataset.beats ?? '0'")) >= count, LOAD_S)

    def requests(self) -> list[str]:
        """Every address that was asked for since the last call."""
        found = []
        for entry in self.driver.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] == "Network.requestWillBeSent":
                found.append(str(event["params"]["request"]["url"]))
        return found

    def complaints(self) -> list[str]:
        """Errors on the console: a script that failed, a file that is missing, a policy that was broken."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def axe(self) -> list[str]:
        """What axe-core finds fault with, by WCAG 2.1 A and AA and good practice; empty: nothing."""
        self.js(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations), e => done([{id: String(e), nodes: []}]))"
        )
        return [f"{one['id']}: {[node['html'][:200] for node in one['nodes']]}" for one in found]


@contextmanager
def chromium(origin: str, profile: Path) -> Iterator[Browser]:
    """Fails in words where there is none: what nobody looked at is not tested."""
    binary, driver_file = shutil.which("chromium"), shutil.which("chromedriver")
    assert binary, "chromium is not installed: apt-get install chromium chromium-driver"
    assert driver_file, "chromedriver is not installed: apt-get install chromium-driver"
    shots = Path(os.environ.get(SHOTS_VARIABLE) or profile / "shots")
    shots.mkdir(parents=True, exist_ok=True)
    options = Options()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={profile / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = Chrome(options=options, service=Service(driver_file))
    driver.set_page_load_timeout(LOAD_S)
    driver.set_script_timeout(LOAD_S)
    try:
        yield Browser(driver, origin, shots)
    finally:
        driver.quit()
