"""Search for messages in the journal's files, by id or by filter, in a thread because reading a long journal takes a while."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from dragoman.errors import AdminRefused, BadSearch, DragomanError
from dragoman.journal.reader import JournalReader
from dragoman.journal.tools.verify import no_progress
from dragoman.model.facts.decode import decode_block
from dragoman.runtime.search.finding import Answer, Question, find_messages
from dragoman.runtime.search.naming import Naming
from dragoman.runtime.search.trace import MessageHistory, find_lives

LIVES_MAX: Final = 50  # of one id: the newest
NO_JOURNAL: Final = "there is none; durability memory stores none"

# Concurrent searches: a long journal without indexes is read completely, and the page must stay responsive meanwhile.
_searching = asyncio.Semaphore(2)


async def lives_of(journal: Path, key: str, lake: str, notes: list[str]) -> list[MessageHistory]:
    """Find all messages with the id `key`, newest first; empty if there is no journal or no match. `lake`, if not empty, has the facts that
    the journal no longer keeps; errors while reading it are added to `notes`."""
    try:
        async with _searching:
            found = await asyncio.to_thread(find_lives, str(journal), key, no_progress, lake, notes) if key else []
    except (DragomanError, OSError):
        return []  # the journal's own tools report damage; open messages are shown anyway
    return found[: -LIVES_MAX - 1 : -1]


async def ended_messages(journal: Path, question: Question, naming: Naming) -> tuple[Answer, str]:
    """Search for ended messages; the text says why the journal could not be read, if it could not."""
    try:
        async with _searching:
            return await asyncio.to_thread(find_messages, str(journal), question, naming), ""
    except BadSearch as error:
        raise AdminRefused("BAD_ARGUMENT", str(error)) from error
    except (DragomanError, OSError) as error:
        return Answer(), str(error) if await asyncio.to_thread(journal.is_dir) else NO_JOURNAL


async def body_of(journal: Path, life: MessageHistory, size_max: int) -> bytes | None:
    """The first `size_max` bytes of a message's body, if the journal still has it."""
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
