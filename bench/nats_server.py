"""A nats-server to measure against: the one on the PATH, else Debian's package unpacked beside the results.

The package is downloaded and unpacked, not installed: installing it would leave a running service on the machine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.contenders import ContenderFailed

START_S = 10.0


def find(out: Path, said: Callable[[str], None]) -> str | None:
    """Return the path of a nats-server, or None where there is none to be had."""
    unpacked = out / "nats" / "usr" / "sbin" / "nats-server"
    for place in (shutil.which("nats-server"), shutil.which("/usr/sbin/nats-server"), shutil.which(unpacked)):
        if place:
            return place
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        return None
    said("downloading Debian's nats-server")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["apt-get", "download", "nats-server"], cwd=folder, capture_output=True, text=True)
        packages = list(Path(folder).glob("nats-server_*.deb"))
        if done.returncode != 0 or not packages:
            return None
        subprocess.run(["dpkg", "-x", str(packages[0]), str(out / "nats")], check=True)
    return str(unpacked) if unpacked.exists() else None


class NatsServer:
    """A nats-server process on a free loopback port."""

    def __init__(self, binary: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        command = [binary, "--addr", "127.0.0.1", "--port", "-1", "--ports_file_dir", self._folder.name]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.url = self._wait()

    def _wait(self) -> str:
        begun = time.monotonic()
        while time.monotonic() - begun < START_S and self.process.poll() is None:
            for file in Path(self._folder.name).glob("*.ports"):
                try:
                    return str(json.loads(file.read_text())["nats"][0])
                except (ValueError, KeyError):
                    pass  # still being written
            time.sleep(0.01)
        self.stop()
        raise ContenderFailed("nats-server did not start")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(10)
        self._folder.cleanup()
