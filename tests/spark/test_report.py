"""The report says what the tables say, in one file that needs nothing else."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from dragoman_spark.report import words, write_report
from dragoman_spark.report.period import Period
from dragoman_spark.tables import BY_NAME
from tests.spark.report_frames import FIRST, QUEUES, Rows, broken, reader, tables, write_tables

SEED = 20260302
SECTIONS = (
    "latency", "waits", "throughput", "funnel", "crossings", "workers", "slo", "capacity", "anomalies", "stuck", "quality",
)  # fmt: skip
WITHOUT_FIGURE = {"stuck", "quality"}
SIZE_MAX = 1_500_000

Write = Callable[[Rows], Path]


class Elements(HTMLParser):
    """Every element of a page, and whether each that was opened is closed."""

    EMPTY = ("meta", "br", "img", "link", "use", "path", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    print(f"seed {SEED}")
    write_tables(folder, tables(SEED, days=3))
    return folder


@pytest.fixture(scope="module")
def report(spark: SparkSession, folder: Path) -> Path:
    return write_report(spark, "", folder / "report.html", read=reader(spark, folder))


@pytest.fixture(scope="module")
def page(report: Path) -> str:
    return report.read_text(encoding="utf-8")


@pytest.fixture
def write(spark: SparkSession, tmp_path: Path) -> Write:
    """A report on rows of the test's own."""

    def made(rows: Rows) -> Path:
        write_tables(tmp_path, {name: rows.get(name, []) for name in BY_NAME})
        return write_report(spark, "", tmp_path / "report.html", read=reader(spark, tmp_path))

    return made


def ask(folder: Path, question: str) -> tuple[object, ...]:
    """DuckDB's answer; `{name}` in the question is a table."""
    files = {name: f"'{folder / name}.parquet'" for name in BY_NAME}
    (row,) = duckdb.sql(question.format(**files)).fetchall()
    return tuple(row)


def part(page: str, name: str) -> str:
    found = re.search(rf'<section id="{name}".*?</section>', page, re.DOTALL)
    assert found is not None, name
    return found[0]


def cells(section: str, first: str) -> list[str]:
    """The first row of a section's tables that begins with this cell."""
    for row in re.findall(r"<tr>(.*?)</tr>", section):
        texts = [unescape(text) for text in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        if texts and texts[0] == first:
            return texts
    raise AssertionError(f"no row begins with {first}")


def test_the_headline_has_the_sums_of_the_tables(page: str, folder: Path) -> None:
    accepted, done, ended = ask(
        folder, "select sum(accepted), sum(done), sum(done + rejected + expired + cancelled) from {throughput}"
    )
    (still_open,) = ask(folder, "select count(*) from {open}")
    (facts,) = ask(
        folder,
        "select sum(facts) from (select broker_id, max(l) - min(f) + 1 as facts from (select broker_id, lsn f, lsn l from {events}"
        " union all select broker_id, lsn, lsn from {messages} union all select broker_id, accepted_lsn, last_lsn from {open})"
        " group by 1)",
    )
    tiles = re.findall(r"<b>(.*?)</b><span>(.*?)</span><small>(.*?)</small>", page)
    assert tiles[0] == (f"{accepted:,}", "messages", f"{ended:,} ended, {still_open} open")
    assert tiles[1] == (words.share(int(str(done)), int(str(ended))), "done", f"{done:,} of {ended:,} that ended")
    assert tiles[5] == (f"{facts:,}", "facts", "of 2 brokers")
    assert f"0 messages are lost: all {accepted:,} accepted ones are settled ({ended:,}) or still open (37)." in page


def test_the_headline_has_the_percentiles_of_the_histogram(page: str, folder: Path) -> None:
    bucket = (
        "select min(bucket) from (select bucket, sum(sum(messages)) over (order by bucket) / sum(sum(messages)) over () as share"
        " from {{latency}} where measure = 'total' group by bucket) where share >= {}"
    )
    shown = []
    for share in (0.5, 0.95, 0.99):
        (number,) = ask(folder, bucket.format(share))
        shown.append(words.duration(2 ** ((int(str(number)) - 0.5) / 32) / 1000))
    assert re.findall(r"<b>([^<]*)</b><span>(?:median|p95|p99) total", page) == shown


def test_every_question_is_answered_by_a_title_a_figure_and_numbers(page: str, report: Path) -> None:
    assert re.findall(r'<section id="(\w+)"', page) == list(SECTIONS)
    for name in SECTIONS:
        section = part(page, name)
        assert re.search(r"<h2[^>]*>[^<]{15,}</h2>", section), name
        assert re.search(r'<p class="reading">[^<]{40,}</p>', section), name
        assert "<td" in section, name
        assert ("<svg" in section) == (name not in WITHOUT_FIGURE), name
        png = report.with_name("report.html.files") / f"{name}.png"
        assert png.exists() == (name not in WITHOUT_FIGURE), name
        assert not png.exists() or png.read_bytes().startswith(b"\x89PNG")


def test_axes_say_their_units(page: str) -> None:
    assert "time (UTC)" in part(page, "latency")
    assert "messages / minute" in part(page, "throughput")
    assert "hour of the day (UTC)" in part(page, "waits")
    assert "workers needed (one slot each)" in part(page, "capacity")
    assert "burn rate" in part(page, "slo")


def test_the_file_needs_nothing_but_itself(page: str, report: Path) -> None:
    elements = Elements(page)
    assert not elements.open
    assert not {"script", "link", "iframe", "object", "embed", "base"} & {tag for tag, _ in elements.found}
    ids = [attrs["id"] for _, attrs in elements.found if "id" in attrs]
    assert len(ids) == len(set(ids))
    for tag, attrs in elements.found:
        assert not {"src", "srcset", "data", "action", "xmlns"} & set(attrs), tag
        assert not [name for name in attrs if name.startswith("on")], tag
        link = attrs.get("href") or "#latency"
        assert link.removeprefix("#") in ids or (tag == "image" and link.startswith("data:image/png;base64,")), link
        clip = re.search(r"url\(#(.*?)\)", attrs.get("clip-path") or "")
        assert clip is None or clip[1] in ids
    # The style of the page and of its figures loads nothing; nor does anything else.
    assert not re.search(r"https?:|@import|url\((?!#)", page)
    assert "default-src 'none'" in page
    assert report.stat().st_size <= SIZE_MAX


def test_a_queues_name_is_text_whatever_it_is(page: str) -> None:
    assert QUEUES[2] == "<script>alert(1)</script>"
    assert QUEUES[2] not in page
    for name in ("latency", "throughput", "funnel", "capacity", "anomalies", "stuck"):
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in part(page, name), name
    assert "webhooks &amp; hooks" in page
    # Neither a formula to matplotlib nor hidden from its legends.
    assert "$\\frac{1}{2}$" in part(page, "throughput")
    assert "“_private”" in part(page, "throughput")
    assert QUEUES[7] not in page
    assert "held by &lt;worker&gt; w1.17" in part(page, "stuck")


def test_many_queues_are_the_busiest_eight_and_others(page: str, folder: Path) -> None:
    (busiest,) = ask(
        folder,
        "select list(queue) from (select queue from {throughput} group by 1 order by sum(accepted) desc limit 8)",
    )
    assert busiest == list(QUEUES[:8])
    others = ask(folder, "select sum(accepted), sum(done) from {funnel} where queue in ('search.index', 'geo', '推送')")
    section = part(page, "funnel")
    assert cells(section, "others")[1:3] == [f"{n:,}" for n in others]
    total = ask(folder, "select sum(accepted), sum(done) from {funnel}")
    assert cells(section, "all queues")[1:3] == [f"{n:,}" for n in total]
    assert "search.index" not in section


def test_a_cell_of_the_crossings_has_its_messages_and_mean_total(page: str, folder: Path) -> None:
    where = "where client_dialect = 'emqp' and worker_dialect = 'rq'"
    messages, total_ms = ask(folder, "select sum(messages), sum(total_ms) / sum(messages) from {crossings} " + where)
    row = re.search(r"<td[^>]*>emqp</td><td[^>]*>rq</td>(.*?)</tr>", part(page, "crossings"))
    assert row is not None
    texts = [unescape(text) for text in re.findall(r"<td[^>]*>(.*?)</td>", row[1])]
    assert (texts[0], texts[-1]) == (f"{messages:,}", words.duration(float(str(total_ms))))


def test_the_hour_of_the_week_with_the_longest_waits_is_named(page: str) -> None:
    # The frames make Mondays at 9 and 10 slow.
    assert re.search(r"Waits are longest on Mondays at (09|10):00", part(page, "waits"))


def test_the_busiest_minute_is_shown_with_its_number(page: str, folder: Path) -> None:
    (most,) = ask(folder, "select max(n) from (select sum(accepted) n from {throughput} group by minute)")
    assert f"{most:,} in the busiest minute" in part(page, "throughput")


def test_a_burn_rate_above_1_is_red_and_stands_on_top_of_the_page(page: str) -> None:
    section = part(page, "slo")
    assert "1 of 3 objectives burns its error budget too fast" in section
    assert '<td class="n bad">14.2</td><td class="s bad">missed</td>' in section
    assert "no messages" in section
    alarms = re.search(r'<ul class="alarms">(.*?)</ul>', page)
    assert alarms is not None
    assert "mail is quick (mail.send)" in alarms[1]


def test_the_forecast_names_the_hour_of_most_need(page: str, folder: Path) -> None:
    workers, hour_s = ask(
        folder, "select sum(workers_needed) n, epoch(hour) from {capacity} group by hour order by n desc, hour limit 1"
    )
    assert f"Next week needs up to {workers} workers" in part(page, "capacity")
    assert words.instant(float(str(hour_s))) in part(page, "capacity")


def test_the_oldest_open_message_comes_first_with_its_reason(page: str) -> None:
    section = part(page, "stuck")
    assert "The oldest open message has been open for 55.5\u00a0min" in section
    assert cells(section, "0.5036")[-1] == "no worker ever served the queue"


def test_empty_tables_give_sentences(write: Write, tmp_path: Path) -> None:
    figures = tmp_path / "report.html.files"
    figures.mkdir()
    (figures / "latency.png").write_bytes(b"of an earlier report")
    page = write({}).read_text(encoding="utf-8")
    assert re.findall(r'<section id="(\w+)"', page) == list(SECTIONS)
    assert "<svg" not in page
    assert "No message has ended yet" in part(page, "latency")
    assert "No objectives are set" in part(page, "slo")
    assert "The tables hold no messages" in page
    assert list(figures.iterdir()) == []


def test_a_broker_of_some_minutes_is_drawn_by_the_minute_and_problems_come_first(write: Write) -> None:
    minutes = [FIRST + dt.timedelta(minutes=n) for n in range(4)]
    counts = {
        "queue": "mail",
        "client_dialect": "emqp",
        "rejected": 0,
        "expired": 0,
        "cancelled": 0,
        "released": 0,
        "quarantined": 0,
    }
    messages = [
        {
            "broker_id": 7,
            "message_no": n,
            "lsn": 10 + n,
            "closed_at": minutes[n],
            "wait_ms": 4.0 + n,
            "total_ms": 10.0 * (n + 1),
        }
        for n in range(4)
    ]
    page = write({
        # Three were accepted each minute, one ended, and none is open: eight are nowhere.
        "throughput": [{**counts, "minute": minute, "accepted": 3, "done": 1} for minute in minutes],
        "latency": [{"hour": FIRST, "queue": "mail", "measure": "total", "bucket": 430, "messages": 4}],
        "messages": messages,
        "orphans": [{"broker_id": 7, "message_no": 99, "why": "closed_twice", "facts": 3}],
        "quality": [broken("orphans", 1), broken("orphans", 2)],
    }).read_text(encoding="utf-8")  # fmt: skip
    last_minute = cells(part(page, "latency"), "Mon 2 Mar 00:03")
    assert last_minute[1:] == ["1", "7\u00a0ms", "7\u00a0ms", "7\u00a0ms", "40\u00a0ms", "40\u00a0ms", "40\u00a0ms"]
    verdict = re.search(r'<p class="verdict bad">(.*?)</p>', page)
    assert verdict is not None
    assert "8 messages are neither settled nor open" in verdict[1]
    assert "The facts of 1 message fit no life" in verdict[1]
    assert "1 quality gate is broken" in verdict[1]
    quality = part(page, "quality")
    assert cells(quality, "orphans")[1:3] == ["broken", "3"]
    assert "&lt;b&gt;&amp;" in quality
    assert '<a href="#quality">' in page.partition("<nav")[0]


@pytest.mark.parametrize(
    ("days", "step_s"), [(0.1, 60), (1, 300), (3, 900), (14, 3600), (60, 21_600), (365, 86_400), (4000, 604_800)]
)
def test_long_periods_are_thinned(days: float, step_s: int) -> None:
    period = Period(1_772_409_600, 1_772_409_600 + int(days * 86_400))
    assert period.step_s() == step_s
    assert period.step_s(finest_s=3600) == max(step_s, 3600)


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 ms"), (0.0004, "0.4 µs"), (0.25, "250 µs"), (4.25, "4.25 ms"), (999.4, "999 ms"), (999.9, "1 s"), (59_999, "1 min"),
     (90_000, "1.5 min"), (5_400_000, "1.5 h"), (864_000_000, "10 days"), (None, "–")],
)  # fmt: skip
def test_durations_are_in_human_units(ms: float | None, text: str) -> None:
    assert words.duration(ms).replace("\u00a0", " ") == text


@pytest.mark.parametrize(
    ("part_of", "whole", "text"),
    [(1, 1, "100 %"), (999_999, 1_000_000, "> 99.99 %"), (9_955, 10_000, "99.55 %"), (1, 1_000_000, "< 0.01 %"), (0, 5, "0 %"), (1, 0, "–")],
)  # fmt: skip
def test_a_share_that_is_not_all_is_never_100_percent(part_of: int, whole: int, text: str) -> None:
    assert words.share(part_of, whole).replace("\u00a0", " ") == text


def test_a_name_shows_no_control_signs_and_is_never_invisible() -> None:
    assert words.name("a\u202eb\x00c") == "a\ufffdb\ufffdc"
    assert words.name("  ") == "“  ”"
    assert len(words.name("x" * 300)) == words.NAME_LENGTH_MAX
