"""Output formats: tables and sentences for people, one JSON document for scripts, progress bars for long operations."""

from __future__ import annotations

import datetime
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from dragoman.model.phrases import duration
from dragoman.printable import printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dragoman.cli.admin_client import Progress

WIDTH_WITHOUT_TERMINAL: Final = 240  # a pipe has no width: lines must not be cut at 80
DAY_NS: Final = 86_400 * 1_000_000_000
BAR_AFTER_S: Final = 0.3


def print_json(value: object) -> None:
    print(printable_json(json.dumps(value, indent=2, ensure_ascii=False, default=str)))


def print_json_line(value: object) -> None:
    """Print one document of a stream."""
    print(printable_json(json.dumps(value, ensure_ascii=False, default=str)), flush=True)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table. Columns that begin with `>` are numbers: right-aligned, and not folded on a narrow terminal."""
    title = printable(title)
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    if sys.stdout.isatty() or not all(cell.isascii() for row in cells for cell in row):
        print_rich_table(title, columns, cells)
    else:
        print_plain_table(title, columns, cells)


def print_plain_table(title: str, columns: Sequence[str], rows: list[list[str]]) -> None:
    """The same without a terminal's width, and without importing rich, which takes a quarter of the time of a trace."""
    names = [column.lstrip(">") for column in columns]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    lines = [names, *rows]
    shown = [
        "  ".join(
            text.rjust(width) if column.startswith(">") else text.ljust(width)
            for text, width, column in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in lines
    ]
    rule = "─" * (sum(widths) + 2 * len(widths))
    print("\n".join([*([title] if title else []), shown[0], rule, *shown[1:]]))


def print_rich_table(title: str, columns: Sequence[str], rows: list[list[str]]) -> None:
    from rich.text import Text

    table = rich_table(columns)
    if title:
        table.title, table.title_justify = Text(title), "left"
    for row in rows:
        table.add_row(*map(Text, row))
    console().print(table)


def rich_table(columns: Sequence[str], is_cut: bool = False) -> Table:
    """An empty table; `is_cut`: each row is one line, cut at the terminal's width."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for column in columns:
        is_number = column.startswith(">")
        table.add_column(
            column.lstrip(">"),
            justify="right" if is_number else "left",
            overflow="ellipsis" if is_cut else "fold",
            no_wrap=is_number or is_cut,
        )
    return table


def console() -> Console:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False)


def print_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names and values, one pair per line."""
    found = list(pairs)
    width = max(len(name) for name, _ in found)
    for name, value in found:
        print(f"{name:<{width}}  {printable(str(value))}")


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(printable(line))


def print_result(answer: object, as_json: bool, *lines: str) -> None:
    """Print a command's result: for scripts the whole answer, for people these lines."""
    print_json(answer) if as_json else print_lines(lines)


def print_page(
    found: dict[str, Any],
    offset: int,
    noun: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    as_json: bool,
) -> None:
    """Print one page of a list as the broker returned it, or its rows as a table."""
    if as_json:
        print_json(found)
        return
    print_table("", columns, rows)
    if (end := offset + len(rows)) < found["total"]:
        print(f"{len(rows)} of {found['total']} {noun} shown; --offset {end} shows the next")


def clock(at_ns: int) -> str:
    """An instant in local time; empty for 0."""
    if at_ns == 0:
        return ""
    moment = datetime.datetime.fromtimestamp(at_ns / 1e9, datetime.UTC).astimezone()
    is_today = moment.date() == datetime.datetime.now(datetime.UTC).astimezone().date()
    return moment.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S")


def ago(at_ns: int, now_ns: int) -> str:
    return f"{duration(max(now_ns - at_ns, 0))} ago" if at_ns else ""


@contextmanager
def progress_bar(label: str, is_quiet: bool = False) -> Iterator[Progress]:
    """A progress bar on stderr if that is a terminal, else nothing."""
    if is_quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    with ExitStack() as stack:
        yield late_bar(label, stack)


def late_bar(label: str, stack: ExitStack) -> Progress:
    """A progress bar that appears only after a while: short operations need no bar, nor the time to import one."""
    from_s = time.monotonic() + BAR_AFTER_S
    bar: Any = None

    def show(done: int, total: int) -> None:
        nonlocal bar
        if bar is None and time.monotonic() >= from_s:
            from rich import progress
            from rich.console import Console

            columns = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeRemainingColumn())
            text = progress.TextColumn("{task.description}")
            bar = stack.enter_context(progress.Progress(text, *columns, console=Console(stderr=True), transient=True))
            bar.add_task(label, total=None)
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done, total=total)

    return show
