"""Recordings: what is written can be read, and what cannot be read is named."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from dragoman_lab.recordings import Recorder, read
from dragoman_lab.recordings.captures import BadRecording

GOLDEN = Path(__file__).parents[2] / "golden"


def test_every_recording_of_the_originals_can_be_read() -> None:
    found = {str(path.relative_to(GOLDEN)): len(read(path)) for path in sorted(GOLDEN.rglob("*.jsonl"))}
    assert found["pingpong/strings.jsonl"] == 22
    assert found["pingpong/package.jsonl"] == 53
    assert all(found.values())


def test_what_a_tap_sees_is_written_as_the_originals_were_recorded(tmp_path: Path) -> None:
    file = io.StringIO()
    recorder = Recorder(file)
    about = {"t": 0.5, "listener": "pingpong.worker", "connection": 17, "peer": "127.0.0.1:5", "to": "broker"}
    recorder.note("a scenario")
    recorder.add({**about, "kind": "opened", "socket_types": ["DEALER", "ROUTER"]})
    recorder.add({**about, "kind": "said", "frames": ["", "5245414459", "00ff"], "sizes": [0, 5, 2]})
    recorder.add({**about, "kind": "said", "to": "peer", "frames": ["", "504f4e47"], "sizes": [0, 4]})
    recorder.add({**about, "connection": 18, "kind": "said", "frames": [""], "sizes": [0]})
    recorder.add({**about, "kind": "ended"})
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert lines[0] == {"note": "a scenario"}
    assert lines[1] == {"t": 0.5, "link": "pingpong.worker", "conn": 0, "to": "broker", "socket_type": "DEALER"}
    assert lines[3]["text"] == ["", "READY", None]
    path = tmp_path / "recording.jsonl"
    path.write_text(file.getvalue())
    entries = read(path)
    assert [entry.frames for entry in entries if entry.frames is not None] == [
        [b"", b"READY", b"\x00\xff"],
        [b"", b"PONG"],
        [b""],
    ]
    assert [entry.conn for entry in entries] == ["0", "0", "0", "0", "1", "0"]
    assert entries[-1].is_eof


def test_rq_is_written_as_bytes_with_their_meaning() -> None:
    file = io.StringIO()
    about = {"t": 0.5, "listener": "rq", "connection": 3, "peer": "127.0.0.1:5", "to": "broker", "kind": "said"}
    Recorder(file).add({**about, "frames": ["018000000007a0046a6f6273e00000000568656c6c6f0a"], "sizes": [23]})
    (line,) = [json.loads(line) for line in file.getvalue().splitlines()]
    assert line["conn"] == "conn0"
    assert line["means"] == "CLEAR ID=7 QUEUE[4]=b'jobs' PAYLOAD[5]=b'hello' REQUEST"


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[]",
        '{"t":1,"conn":0,"to":"nobody","eof":true}',
        '{"t":1,"conn":0,"to":"peer","frames":["zz"]}',
        "{}",
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"note":"fine"}\n' + line + "\n")
    with pytest.raises(BadRecording) as caught:
        read(path)
    assert caught.value.line_no == 2
