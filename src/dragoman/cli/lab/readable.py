"""Messages as people read them: words and text as they are, other bytes in hex, long ones cut short with their size."""

from __future__ import annotations

from typing import Final

from dragoman.runtime.risp_text import text_of

FRAME_SHOWN_MAX: Final = 120


def readable(frames: list[bytes], is_risp: bool = False, sizes: list[int] | None = None) -> str:
    """One line for one message; `sizes` are the frames' true ones where they were cut on the way."""
    if is_risp:
        return text_of(frames[0])
    sizes = sizes or [len(frame) for frame in frames]
    return " · ".join(readable_frame(frame, size) for frame, size in zip(frames, sizes, strict=True))


def readable_frame(frame: bytes, size: int) -> str:
    if size == 0:
        return '""'
    cut = frame[:FRAME_SHOWN_MAX]
    try:
        text = cut.decode()
    except UnicodeDecodeError as error:
        # Cut in the middle of a character is still text.
        text = cut[: error.start].decode() if error.start >= len(cut) - 3 and len(cut) < size else ""
    shown = text if text and text.isprintable() else f"0x{cut.hex()}"
    return shown if len(cut) == size else f"{shown}… ({size} bytes)"
