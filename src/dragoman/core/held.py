"""What workers have in hand, in the order of the messages' numbers: the same list live and in a replay."""

from __future__ import annotations

from dragoman.core.lifecycle import LEASED
from dragoman.model.message import Message


def held_messages(messages: dict[int, Message]) -> list[Message]:
    return sorted([m for m in messages.values() if m.state == LEASED], key=message_number)


def message_number(m: Message) -> int:
    return m.number
