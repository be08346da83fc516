"""The text fields of less frequent facts (`FactLog.numbered`): workers, schedules and firings."""

from __future__ import annotations

from librt.strings import BytesWriter, write_i32_le, write_i64_le

from dragoman.model.facts.records import write_accepted
from dragoman.model.message import Message
from dragoman.model.peer import Peer


def worker_text(peer: Peer, queues: list[bytes]) -> bytes:
    """The text of a worker_joined fact: listener, remote, identity (hex), then a `weight queue` per claim, tab separated."""
    return b"\t".join([peer.listener.encode(), peer.remote.encode(), peer.identity.hex().encode(), *queues])


def claims_of(text: bytes) -> list[tuple[int, bytes]]:
    """Weight and name of the queues in such a text. A name may contain tabs: a part that does not begin with a weight and a space belongs
    to the name before it."""
    claims: list[tuple[int, bytes]] = []
    for item in text.split(b"\t")[3:]:
        weight, space, name = item.partition(b" ")
        if space and weight.removeprefix(b"-").isdigit():
            claims.append((int(weight), name))
        elif claims:
            claims[-1] = (claims[-1][0], claims[-1][1] + b"\t" + item)
    return claims


def schedule_text(template: Message, interval_ns: int, cron: str, runs: int) -> bytes:
    """The text of a scheduled fact: `i64 interval_ns, i32 runs, i32 n, cron (n)`, then the template as an accepted record."""
    out = BytesWriter()
    expression = cron.encode()
    write_i64_le(out, interval_ns)
    write_i32_le(out, runs)
    write_i32_le(out, len(expression))
    out.write(expression)
    write_accepted(out, template, 0, True)
    return out.getvalue()


def fired_text(message_no: int, next_due_ns: int, runs_left: int) -> bytes:
    """The text of a fired fact: `i64 message_no, i64 next_due_ns, i64 runs_left`. Number and small are the schedule's number and the due instant."""
    out = BytesWriter()
    write_i64_le(out, message_no)
    write_i64_le(out, next_due_ns)
    write_i64_le(out, runs_left)
    return out.getvalue()
