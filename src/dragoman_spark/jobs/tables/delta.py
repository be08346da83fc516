"""The tables as Delta tables, for readers without dragoman.

The files stay where Spark wrote them, and a log beside them, `<out>/<table>/_delta_log`, names those that count.

The state is authoritative and the log follows it: first a batch is committed as always, then its files are added to the log, with the
application transaction (table, batch). The other order would be wrong, because a repeated batch may contain other
facts: a log that had it already could neither keep it nor skip it. So a crash in between leaves a log that is one batch behind,
which the next command repairs; and a batch in the log is never added again.

Once tables are Delta tables they stay so: every later writer, whatever its format, updates the log.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from dragoman.errors import DeltaMissing, OutUnreachable
from dragoman_spark.jobs import state as states
from dragoman_spark.jobs.tables.delta_stats import stats
from dragoman_spark.jobs.tables.folders import batch_of
from dragoman_spark.jobs.tables.root import TableRoot, for_spark
from dragoman_spark.jobs.tables.table_store import GROWING, TableStore, read_stated_folders
from dragoman_spark.schemas import Table
from dragoman_spark.tables import BY_NAME, TABLES

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema

LOG: Final = "_delta_log"
# Earlier versions cannot be read anyway: folding removes the files they name. `watch` makes a version every few seconds.
SETTINGS: Final[dict[str, str | None]] = {"delta.logRetentionDuration": "interval 1 days"}
_NAMES: Final = {"int": "integer"}
# `watch` folds and rebuilds beside its batches, and both call this; each must read the tables after it has the lock.
_ONE_AT_A_TIME: Final = Lock()


def is_delta(root: TableRoot) -> bool:
    """Whether the tables here are Delta tables: the last one's log is created last."""
    return root.exists(f"{TABLES[-1].name}/{LOG}")


def begin(root: TableRoot) -> None:
    """Make the tables here Delta tables from now on; if they are already, repair what a crash or a lost state left. Raises DELTA_MISSING if
    the package is not installed."""
    try:
        from deltalake import DeltaTable
    except ImportError as error:
        raise DeltaMissing from error
    for table in TABLES:
        if not root.exists(f"{table.name}/{LOG}"):
            uri, schema = root.other_uri(table.name), _schema(table)
            with _readable(root):
                DeltaTable.create(uri, schema, name=table.name, description=table.about, configuration=SETTINGS)
    publish(root, is_thorough=True)


def publish(root: TableRoot, is_thorough: bool = False) -> None:
    """Update every log to what is committed; nothing if the tables are no Delta tables. `is_thorough`: file by file, and also back to a
    state that is older than the log."""
    if is_delta(root):
        with _ONE_AT_A_TIME:
            _publish(root, is_thorough)


def _publish(root: TableRoot, is_thorough: bool) -> None:
    store = TableStore(root)
    batch = (store.state or states.BEFORE_ALL).batch
    stated = read_stated_folders(root)
    for table in TABLES:
        if table not in GROWING:
            folders = {stated[table.name]} if table.name in stated else set()
        elif store.state is None:
            folders = set()
        elif store.has_days:
            # Rows of a rebuilt day hide rows of other files, which a log cannot express. `compact.fold_days` must run first.
            continue
        else:
            folders = store.folders_read(table)
        with _readable(root):
            _bring(root, table, folders, batch, is_thorough)


def read_delta(session: SparkSession, out: str, name: str, version: int | None = None) -> DataFrame:
    """A table according to its log, now or at a version; without Spark's own Delta. Counts are added up."""
    from deltalake import DeltaTable

    table = BY_NAME[name]
    files = DeltaTable(TableRoot(out).other_uri(name), version=version).file_uris()
    if not files:
        return session.createDataFrame([], table.struct())
    frame = session.read.schema(table.struct()).parquet(*[for_spark(file) for file in files])
    return table.merged(frame) if table.growth == "counted" else frame


def _bring(root: TableRoot, table: Table, folders: set[str], batch: int, is_thorough: bool) -> None:
    """Make the log name the files of these folders and no others, in one commit, so that no reader sees a part of it."""
    from deltalake import CommitProperties, DeltaTable, Transaction
    from deltalake.transaction import AddAction, RemoveAction

    log = DeltaTable(root.other_uri(table.name))
    published = log.transaction_version(table.name)
    is_ahead = published is not None and published > batch
    if is_ahead and not is_thorough:
        return  # an outdated view of the tables
    named = _named(log)
    new = folders if is_thorough else _new_folders(folders, named, published)
    written = {f"{folder}/{file.name}": file for folder in new for file in root.parquet(f"{table.name}/{folder}")}
    gone = {path for path in named if _folder(path) not in folders or (is_thorough and path not in written)}
    now_ms = time.time_ns() // 1_000_000
    actions: list[Any] = [RemoveAction(path, True, now_ms, None, {}) for path in sorted(gone)]
    actions += [
        AddAction(path, file.size, {}, file.written_ms, True, stats(table, file.footer))
        for path, file in sorted(written.items())
        if path not in named
    ]
    if not actions and not is_ahead:
        return
    properties = CommitProperties(app_transactions=[Transaction(table.name, batch)])
    log.create_write_transaction(actions, "append", _schema(table), commit_properties=properties)


def _new_folders(folders: set[str], named: Iterable[str], published: int | None) -> set[str]:
    """Folders that are not in the log. A batch up to its transaction is in the log, possibly in a fold, and is never added again."""
    new = folders - {_folder(path) for path in named}
    if published is None:
        return new
    return {folder for folder in new if (batch := batch_of(folder)) is None or batch > published}


@contextmanager
def _readable(root: TableRoot) -> Iterator[None]:
    from deltalake.exceptions import DeltaError

    try:
        yield
    except DeltaError as error:
        raise OutUnreachable(root.address, str(error)) from error


def _named(log: DeltaTable) -> set[str]:
    import pyarrow as pa

    return {unquote(path) for path in pa.table(log.get_add_actions())["path"].to_pylist()}


def _folder(path: str) -> str:
    return path.partition("/")[0]


def _schema(table: Table) -> Schema:
    from deltalake import Field, Schema
    from deltalake.schema import ArrayType, PrimitiveType

    def kind(name: str) -> Any:
        if name == "strings":
            return ArrayType(PrimitiveType("string"), contains_null=False)
        return PrimitiveType(_NAMES.get(name, name))

    return Schema([Field(c.name, kind(c.type), nullable=True, metadata={"comment": c.about}) for c in table.columns])
