"""The LINE chunks of a snapshot: messages that have only waited, line by line, sorted by number, in a checkpoint's columns.

The snapshot's walk over the messages in memory passes them to `take`; rows of a tail are read when its line is written. Rows removed from a
tail since the snapshot began are read from `Tail.departed`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Final, final

from dragoman.core.state.lines import code_of, line_code, line_key
from dragoman.core.state.queue import Queue, lines_with_tails
from dragoman.core.state.tail import Tail, copy_row, id_hash
from dragoman.core.storage.checkpoint import write_line
from dragoman.limits import CHECKPOINT_ROWS_MAX
from dragoman.model.message import POSITION_SHIFT, Message

ROWS_PER_UNIT: Final = 16  # rows copied by column that cost as much as one written field by field
ROWS_GATHERED_MAX: Final = 2000  # rows merged one by one in one step
ALL: Final = 1 << 61

# The source of a row.
FROM_MEMORY: Final = 0
FROM_DEPARTED: Final = 1
FROM_TAIL: Final = 2


@final
class LineRows:
    """The rows of all lines. `last_no`: higher numbers are not included. `is_watching`: tails may change between two calls."""

    def __init__(self, last_no: int, moved_position: Callable[[int], int] | None, is_watching: bool) -> None:
        self.last_no = last_no
        self.moved_position = moved_position
        self.is_watching = is_watching
        self.is_over: bool = False
        self.units: int = 0
        self.segments: set[int] = set()  # journal segments that the rows refer to
        # The rows of messages in memory, in five columns, and by line the indexes of its rows there.
        self.flat: list[array[int]] = new_columns()
        self.rows: dict[int, array[int]] = {}
        self.tails: dict[int, Tail] = {}
        self.codes: list[int] = []
        self.code_at: int = 0
        self.row_at: int = 0
        self.row_cursor: int = 0  # rows of the current line up to this number are in `columns` or written
        self.columns: list[array[int]] = new_columns()

    def close(self) -> None:
        for tail in self.tails.values():
            tail.departed = None

    def watch(self, queues: list[Queue]) -> None:
        """Collect the lines that have a tail, and have the tails record removed rows from now on."""
        lines = lines_with_tails(queues)
        for queue in queues:
            queue.has_tails = False
        for queue, lane, line in lines:
            queue.has_tails = True
            self.tails[line_code(queue.number, lane, line)] = line.tail
            if self.is_watching:
                line.tail.departed = new_columns()

    def take(self, m: Message) -> None:
        """Add a message in memory that has only waited."""
        code = code_of(m.queue_no, m.priority, line_key(m.address))
        rows = self.rows.get(code)
        if rows is None:
            rows = array("q")
            self.rows[code] = rows
        rows.append(len(self.flat[0]))
        row = (m.number, m.position, m.accepted_ns, m.expires_ns, id_hash(m.client_id))
        for column, value in zip(self.flat, row, strict=True):
            column.append(value)

    def order(self) -> int:
        codes = list(self.rows)
        for code in self.tails:
            if code not in self.rows:
                codes.append(code)
        codes.sort()
        self.codes = codes
        return len(codes) // 4

    def next_rows(self, chunks: list[bytes]) -> int:
        """Write some rows; returns the units of work done. `is_over` is set after the last."""
        self.units = 0
        if self.code_at == len(self.codes):
            self.is_over = True
            return 0
        code = self.codes[self.code_at]
        tail = self.tails.get(code)
        is_over = self.gather(tail, self.rows.get(code))
        columns = self.columns
        while len(columns[0]) >= CHECKPOINT_ROWS_MAX:
            chunks.append(write_line(code, columns, CHECKPOINT_ROWS_MAX))
            for column in columns:
                del column[:CHECKPOINT_ROWS_MAX]
        if is_over:
            if len(columns[0]) > 0:
                chunks.append(write_line(code, columns, len(columns[0])))
                self.columns = new_columns()
            if tail is not None and self.is_watching:
                tail.departed = None
            self.code_at += 1
            self.row_at = 0
            self.row_cursor = 0
        return self.units

    def gather(self, tail: Tail | None, indexes: array[int] | None) -> bool:
        """Append the next rows of a line, by number, to `columns`; True when there are no more."""
        stop = ALL
        at = 0
        end = 0
        departed = tail.departed if tail is not None and self.is_watching else None
        if tail is not None:
            is_plain = (indexes is None or self.row_at == len(indexes)) and (departed is None or not departed[0])
            at = tail.after(self.row_cursor)
            last = tail.after(self.last_no)
            end = min(at + (CHECKPOINT_ROWS_MAX if is_plain and is_whole(tail) else ROWS_GATHERED_MAX), last)
            if end < last:
                stop = abs(tail.numbers[end - 1])
        chosen: list[tuple[int, int, int]] = []  # number, source, index in the source
        if indexes is not None:
            numbers = self.flat[0]
            most = self.row_at + ROWS_GATHERED_MAX
            if most < len(indexes) and numbers[indexes[most - 1]] < stop:
                stop = numbers[indexes[most - 1]]
                end = tail.after(stop) if tail is not None else 0
            while self.row_at < len(indexes) and numbers[indexes[self.row_at]] <= stop:
                index = indexes[self.row_at]
                chosen.append((numbers[index], FROM_MEMORY, index))
                self.row_at += 1
        if departed is not None:
            self.choose_departed(departed[0], min(stop, self.last_no), chosen)
        self.units += 3 + (end - at) // ROWS_PER_UNIT + len(chosen)
        began = len(self.columns[0])
        if tail is not None and not chosen and is_whole(tail):
            for column, values in zip(self.columns, tail.columns(), strict=True):
                column.extend(values[at:end])  # nothing was removed from the middle: copied as a whole
        else:
            self.merge(tail, at, end, departed, chosen)
        self.fix_positions(began)
        self.row_cursor = stop
        return stop == ALL

    def choose_departed(self, numbers: array[int], stop: int, chosen: list[tuple[int, int, int]]) -> None:
        """Add the rows removed from the tail since the snapshot began."""
        for index in range(len(numbers)):
            if self.row_cursor < numbers[index] <= stop:
                chosen.append((numbers[index], FROM_DEPARTED, index))

    def merge(
        self,
        tail: Tail | None,
        at: int,
        end: int,
        departed: list[array[int]] | None,
        chosen: list[tuple[int, int, int]],
    ) -> None:
        in_tail: list[array[int]] = []
        if tail is not None:
            in_tail = tail.columns()
            for index in range(at, end):
                if tail.numbers[index] > 0:
                    chosen.append((tail.numbers[index], FROM_TAIL, index))
            self.units += end - at
        chosen.sort()
        for _, source, index in chosen:
            rows = self.flat
            if source == FROM_TAIL:
                rows = in_tail
            elif source == FROM_DEPARTED and departed is not None:
                rows = departed
            copy_row(rows, index, self.columns)

    def fix_positions(self, began: int) -> None:
        """Update the positions of the rows from `began` on, and collect their segments."""
        positions = self.columns[1]
        moved = self.moved_position
        segment = -1
        for at in range(began, len(positions)):
            if moved is not None:
                positions[at] = moved(positions[at])
            here = positions[at] >> POSITION_SHIFT
            if here != segment:
                segment = here
                self.segments.add(here)


def is_whole(tail: Tail) -> bool:
    """Whether nothing was removed from its middle."""
    return tail.live == len(tail.numbers) - tail.head


def new_columns() -> list[array[int]]:
    """Empty columns: number, position, accepted_ns, expires_ns, id hash."""
    return [array("q"), array("q"), array("q"), array("q"), array("q")]
