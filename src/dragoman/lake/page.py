"""Generates docs/reference/lake.md from the schema: `python -m dragoman.lake.page docs/reference/lake.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from dragoman import limits
from dragoman.lake import schema

HEAD: Final = """\
# The lake

The journal's [facts](facts.md) as Parquet files, for readers of all of them at once: Spark, DuckDB, Polars, pandas. One row per
fact. `dragoman up` writes it while it runs, through a process of its own (the sealer), where pyarrow is installed (`pip install
'dragoman[lake]'`) and `lake.mode` is not `off`; `dragoman seal` does it by hand. Settings are in the section `lake` of
[config.md](config.md).

This page is made from the code: `make docs` rewrites it.

## Files

```
<root>/facts/incoming/date=2026-01-31/<broker>-<first lsn>-<last lsn>.parquet
<root>/facts/history/date=2026-01-31/<broker>-<first lsn>-<last lsn>.parquet
```

`<broker>` is the column `broker_id` as 16 hex digits, each lsn has 20 decimal digits. The root is `DATA/lake`, or `lake.root`: a
directory, or an address that pyarrow's file systems take (`s3://`, `gs://`, `abfs://`, `hdfs://`). Several brokers may share a lake.

- Files have the mode `lake.file_mode` (0640) and directories `lake.directory_mode` (0750), whatever the broker's umask is: a program of
  another user of the broker's group reads the lake and nothing else. Directories that were there before keep their mode.
- A file is **dense**: it holds every fact of its broker from its first lsn to its last, in order. So its name gives its number of rows.
- All its facts happened on its **date** (UTC, of the column `at`).
- A file is there **whole or not at all**: it is written under a name that begins with `_tmp-`, synced and renamed; in an object store,
  which has no rename, the upload of an object is atomic. Pass over names that begin with `_` or `.`, as Spark and Arrow do. Names of any
  other form are not the lake's; dragoman leaves them alone.
- `incoming` gets a file {interval_s:g} s after the first fact that is not in one, or at {file_rows:,} rows. Files of `incoming` are joined into files of
  `history` when they make {file_rows:,} rows, when there are {parts_max} of them, or an hour after their date is over. A file of `history` has at
  most {history_rows:,} rows.
- Files of `incoming` stay for {keep_h:g} hours after that, for streams that are behind (`lake.incoming_keep_s`). **Where both hold a fact, the file
  in `history` counts.** Streams read `incoming` alone; everybody else reads `history` and, of `incoming`, what it does not have.
  `dragoman.lake.layout.cover` makes that choice from the names.

Only facts that are synced are sealed, so that no crash can take back what the lake has. A sealer that dies goes on behind the
highest lsn of its broker that it finds in the lake: no fact is lost, none comes twice. A hole in the lsns of a broker means that facts left the
journal before they were sealed (`journal.age_max_s`, a lake that was off); the journal waits for the lake when it makes room by size.
A journal that was restored from a backup must not go into the same lake: its numbers would come twice (`LAKE_AHEAD`).

Columns are packed as differences (lsn, instants, message numbers), through dictionaries (small numbers) or plainly (ids, hashes), and
compressed with zstd. With ids of 36 characters and hashes of bodies a fact takes about 15 bytes.

## Columns

This is schema version **{version}**; each file says its own as `dragoman.schema_version` in its metadata, and the broker's whole id as
`dragoman.broker_id`. The rule for changing it: a column is added at the end, may be null, and raises the version; none is
removed, renamed, retyped or given another meaning. A reader takes a column that a file lacks as null, and refuses files of a
later version (`LAKE_TOO_NEW`).

What a fact does not say is null, never 0 and never an empty text. Instants are microseconds, UTC.
"""

SAYS: Final = """\
## What each kind says

Besides `broker_id`, `lsn`, `kind` and `at`, which every row has:

| kind | columns |
|---|---|
| `started` | count (boot_no), text (version) |
| `queue_named` | queue_no, text (name). Each start names all queues again |
| `queue_forgotten` | queue_no, text (name), reason. The number is never used again |
| `worker_joined` | worker_no, worker_dialect, text |
| `worker_left` | worker_no, reason |
| `accepted` | message_no, queue_no, schedule_no, client_dialect, retries_left, priority, flags, timeout_us, expires_at, due_at, body_size, body_hash, body, client_id |
| `leased` | message_no, worker_no, attempt |
| `delivered` | message_no, worker_no |
| `released` | message_no, worker_no, queue_no, attempt, client_dialect, worker_dialect, reason, is_death, retries_left, due_at, leased_at |
| `closed` | message_no, worker_no, holder_no, queue_no, attempt, client_dialect, worker_dialect, outcome, reason, due_at, accepted_at, first_leased_at, leased_at, delivered_at, body_size, reply_size |
| `quarantined` | message_no, worker_no, queue_no, attempt, client_dialect, worker_dialect, reason, leased_at |
| `requeued` | message_no, queue_no, client_dialect |
| `scheduled` | schedule_no, queue_no, due_at, text (cron) |
| `unscheduled` | schedule_no, reason |
| `fired` | schedule_no, message_no, due_at, count (runs left; -1: for ever) |
| `paused`, `resumed` | queue_no |
| `published` | count, text (topic) |
| `clock_stepped` | count (nanoseconds, negative back) |
| `late` | worker_no, worker_dialect, text (the id it named) |
| `noted` | count, text (code) |

An attempt (one worker having one message) ends with exactly one fact: `released`, `quarantined`, or a `closed` whose `leased_at` is
not null. Facts of journals that older versions wrote may say less.
"""


def render() -> str:
    head = HEAD.format(
        interval_s=limits.LAKE_INTERVAL_S,
        file_rows=limits.LAKE_FILE_ROWS,
        parts_max=limits.LAKE_PARTS_MAX,
        history_rows=limits.LAKE_HISTORY_ROWS_MAX,
        keep_h=limits.LAKE_INCOMING_KEEP_S / 3600,
        version=schema.VERSION,
    )
    return "\n".join([head, *column_rows(), "", SAYS, "## Small numbers\n", *word_rows()]).rstrip() + "\n"


def column_rows() -> Iterator[str]:
    yield "| column | type | meaning |\n|---|---|---|"
    for column in schema.COLUMNS:
        kind = f"{column.type}, never null" if column.is_required else column.type
        yield f"| `{column.name}` | {kind} | {column.about} |"


def word_rows() -> Iterator[str]:
    yield "They never change; [facts.md](facts.md) says what the words mean.\n\n| column | numbers |\n|---|---|"
    yield f"| `kind` | {numbered(schema.KINDS)} |"
    yield f"| `client_dialect`, `worker_dialect` | {numbered(schema.DIALECTS)} |"
    yield f"| `outcome` | {numbered(schema.OUTCOMES)} |"
    yield f"| `reason` | {numbered(schema.REASONS)} |"


def numbered(words: Mapping[int, str]) -> str:
    return ", ".join(f"{number} {word}" for number, word in words.items())


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
