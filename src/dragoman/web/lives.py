"""Messages out of the journal's files, by id or by what they have in common: read in a thread, for a long journal takes a while."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from dragoman.errors import AdminRefused, BadSearch, DragomanError
from dragoman.journal import JournalReader
from dragoman.model.decode import decode_block
from dragoman.runtime.finding import Question, find_messages
from dragoman.runtime.naming import Naming
from dragoman.runtime.trace import Life, find_lives, no_progress

LIVES_MAX: Final = 50  # of one id: the newest
NO_JOURNAL: Final = "there is none; durability memory keeps none"

Fact = dict[str, Any]

# Searches at a time: a long journal without indexes is read whole, and the page must go on meanwhile.
_searching = asyncio.Semaphore(2)


async def lives_of(journal: Path, key: str, lake: str, notes: list[str]) -> list[Life]:
    """The newest first; none where there is no journal, or nothing in it answers to `key`. `lake` has what the journal no longer
    keeps, where there is one; what could not be read of it is a sentence in `notes`."""
    try:
        async with _searching:
            found = await asyncio.to_thread(find_lives, str(journal), key, no_progress, lake, notes) if key else []
    except (DragomanError, OSError):
        return []  # a journal that cannot be read is told of by its own tools; what is open is shown all the same
    return found[: -LIVES_MAX - 1 : -1]


async def ended_in(journal: Path, question: Question, naming: Naming) -> dict[str, Any]:
    """Ended messages; what keeps the journal from being read is a sentence in `trouble`."""
    try:
        async with _searching:
            answer = await asyncio.to_thread(find_messages, str(journal), question, naming)
    except BadSearch as error:
        raise AdminRefused("BAD_ARGUMENT", str(error)) from error
    except (DragomanError, OSError) as error:
        trouble = str(error) if await asyncio.to_thread(journal.is_dir) else NO_JOURNAL
        return {"rows": [], "next_lsn": 0, "searched_from_ns": 0, "notes": [], "trouble": trouble}
    return {
        "rows": [row.view() for row in answer.rows],
        "next_lsn": answer.next_lsn,
        "searched_from_ns": answer.searched_from_ns,
        "notes": answer.notes,
        "trouble": "",
    }


async def body_of(journal: Path, life: Life, size_max: int) -> bytes | None:
    """The beginning of a body that the journal still keeps."""
    begin = next((fact for fact in life.facts if fact["fact"] == "accepted"), None)
    if begin is None:
        return None
    return await asyncio.to_thread(read_body, journal, life.number, begin["lsn"], size_max)


def read_body(journal: Path, number: int, lsn: int, size_max: int) -> bytes | None:
    try:
        block = next(JournalReader(str(journal)).read(lsn), None)
    except (DragomanError, OSError):
        return None
    for fact in decode_block(block.records, with_body=True) if block is not None else []:
        body = fact.get("body")
        if fact["fact"] == "accepted" and fact["message_no"] == number and isinstance(body, bytes):
            return body[:size_max]
    return None
