"""Every limit of the broker, and the defaults of those that are settings: the unit is in the name, the reason in the comment."""

from __future__ import annotations

from typing import Final

# No limit; the largest number that compiled code compares without allocating an int object.
NO_BOUND: Final = (1 << 62) - 1
# One message, all frames together. A setting (`limits.message_size_max`); 64 MiB is enough for any reasonable job and limits a hostile one.
MESSAGE_SIZE_MAX: Final = 64 * 1024 * 1024
# Frames in one message. The longest valid message of the five dialects has 9; routing envelopes add a few.
FRAMES_MAX: Final = 64
# Stale entries of a line, of the delayed messages or of the expiries before they are rebuilt: limits the memory left by a flood of cancels.
STALE_ENTRIES_MAX: Final = 1024
# Lines in one lane: clients share a line if their addresses hash alike. A line costs about 2 kB; some clients use an address per message.
LINES_MAX: Final = 4096
# Dismissed workers remembered, also after they disconnect: about 300 bytes each, and only an operator adds them.
DISMISSALS_MAX: Final = 10_000
# Dismissed workers that are not connected, in a list of workers.
KEPT_OUT_SHOWN_MAX: Final = 100
# A message's priority: 0 (default) to 9 (highest). More than ten levels are hard to reason about.
PRIORITY_MAX: Final = 9
# Bytes of a client's message id, an address, a dedupe key: each has a one-byte length in the journal.
ID_SIZE_MAX: Final = 255
# Bytes of a queue's or topic's name.
NAME_SIZE_MAX: Final = 255
# Bytes of one message's headers.
HEADERS_SIZE_MAX: Final = 65535
# Queues of a broker. Each costs about 1 kB until it is forgotten, and peers choose the names.
QUEUES_MAX: Final = 100_000
# Queues that one worker may name in one message, and so may serve: each of its free slots is matched against all of them.
SERVED_MAX: Final = 1000
# Bytes of the queue list of one INFORM: 1000 names of 250 bytes.
SERVED_TEXT_SIZE_MAX: Final = 256 * 1024
# Queues checked for disuse per sweep (ten times a second): some tenths of a millisecond; and queues forgotten per sweep at most.
QUEUES_LOOKED_AT_STEP: Final = 1000
QUEUES_FORGOTTEN_STEP: Final = 200
# No queue is forgotten automatically this soon after a start: its workers may not have reconnected yet.
FORGET_AFTER_START_NS: Final = 3_600_000_000_000
# The highest queue number: facts have 4 bytes for it.
QUEUE_NO_MAX: Final = 2**31 - 1
# Durable schedules; each is checked in every sweep and written whole into every checkpoint.
SCHEDULES_MAX: Final = 10_000
# Free slots of one worker: a READY beyond them adds none, so that a flood of READY cannot claim a whole queue.
SLOTS_MAX: Final = 100_000
# Messages loaded from disk at a time when a line has none left in memory: about 3 ms of the event loop.
REFILL_COUNT: Final = 1000
# Bytes of small bodies loaded with them, whatever their count: allocating memory takes up to 3.5 ms per megabyte.
REFILL_SIZE: Final = 2 * 1024 * 1024
# Bytes of bodies read from disk in one step, also of one larger body: 2 to 7 ms, depending on how much memory is newly allocated.
LOAD_STEP_SIZE: Final = 2 * 1024 * 1024
# A body up to this size is read whole with its record. A larger one is verified through a buffer, and loaded in parts when it is needed.
READ_WHOLE_SIZE: Final = 64 * 1024
# Verifying a record without keeping it takes this part of the time of loading it: 64 MiB take 10 to 17 ms.
VERIFIED_SHARE: Final = 8
# Bytes that a message in memory counts as, without its body: its object, its ids, its entries in the indexes.
MESSAGE_SIZE: Final = 1024
# Bytes of memory of a waiting message that is on disk only: five columns of 8 bytes (core/state/tail).
TAIL_ENTRY_SIZE: Final = 40
# Messages leased, or released from a lost worker, in one step: each may cost a read from disk. The rest follows in the next steps.
LEASES_PER_STEP_MAX: Final = 500
# Bytes of bodies that are checked for a worker and turned down in one step: some ms.
JUDGED_SIZE_MAX: Final = 4 * 1024 * 1024
# Doublings of the retry backoff; the setting `backoff_max_ns` caps it earlier (2**20 initial backoffs).
BACKOFF_DOUBLINGS_MAX: Final = 20
# A ZMTP identity (RFC 37).
IDENTITY_SIZE_MAX: Final = 255
# One ZMTP command after the handshake: enough for any topic prefix, small enough to buffer.
COMMAND_SIZE_MAX: Final = 64 * 1024
# One ZMTP command of the handshake: smaller, because the peer is unknown. READY needs about 50.
HANDSHAKE_COMMAND_SIZE_MAX: Final = 8 * 1024
# Properties in one READY. libzmq sends 2 and those of the user.
METADATA_COUNT_MAX: Final = 64

# One journal segment. A setting (`journal.segment_size`); large enough that rolls are rare, small enough to delete history in steps.
SEGMENT_SIZE: Final = 64 * 1024 * 1024
# Smallest segment worth its header and its directory entry.
SEGMENT_SIZE_MIN: Final = 64 * 1024
# Free bytes after a checkpoint for the first facts; on a full disk (MIN) for the block that confirms it, so that settled segments can be deleted.
CHECKPOINT_ROOM_SIZE: Final = 16 * 1024
CHECKPOINT_ROOM_SIZE_MIN: Final = 1024
# All journal files together. A setting (`journal.size_max`).
JOURNAL_SIZE_MAX: Final = 10 * 1024 * 1024 * 1024
# Bytes that the journal leaves free on its disk, by deleting settled history. A setting (`journal.free_min`): enough for a spare segment,
# a checkpoint, and what the lake writes until it has caught up.
JOURNAL_FREE_MIN: Final = 256 * 1024 * 1024
# On a nearly full disk the spare segment may be as small as a segment divided by this: 8 MiB are enough to settle some 80 000 leases.
SPARE_SHARE_MIN: Final = 8
# Bytes of records in one block: its size field has 32 bits, and one tick never collects more than UNCOMMITTED_SIZE_MAX and one message.
BLOCK_SIZE_MAX: Final = 1024 * 1024 * 1024
# A larger block is written by a thread: a megabyte takes about 1 ms of the event loop.
WRITTEN_ASIDE_SIZE: Final = 4 * 1024 * 1024
# Unsynced bytes of the journal; they are kept in memory too, in case a sync fails.
UNCOMMITTED_SIZE_MAX: Final = 64 * 1024 * 1024
# Durability `os` syncs when this much is unsynced, well below the limit above.
UNSYNCED_SIZE_SOON: Final = 16 * 1024 * 1024
# Durability `os` syncs this often, so that a power failure loses at most about a second.
SYNC_INTERVAL_NS: Final = 1_000_000_000
# A checkpoint is written when this many times its size was journaled since the last one: at most a quarter more bytes.
CHECKPOINT_AMORTISE: Final = 4
# The records of a segment are carried when less than this part of it is live.
CARRY_LIVE_PERCENT: Final = 25
# Live records whose sizes are read to estimate how much of a segment is live: four bytes each, about 5 ms for all segments together.
SEGMENT_SAMPLES_MAX: Final = 8
# Candidates for those samples among the messages of one line that one sweep visits.
TAIL_SAMPLES_MAX: Final = 10_000
# Segment files kept open for reading bodies; others are opened when needed.
OPEN_SEGMENTS_MAX: Final = 256
# The newest segment is indexed in steps of this many bytes; every trace scans what is not indexed yet.
INDEX_STEP_SIZE: Final = 4 * 1024 * 1024
# Disk space of this many segments is left to the journal before anything is indexed.
INDEX_SEGMENTS_KEPT: Final = 4
# Keys looked up in one segment's index; a trace with more (an id that was reused very often) scans the segment instead.
INDEX_KEYS_MAX: Final = 2000
# Topics counted individually per second, in `published` facts; the others share one count without a name.
TOPICS_COUNTED_MAX: Final = 1000
# Prefixes one subscriber may subscribe to.
SUBSCRIPTIONS_MAX: Final = 10_000
# Kinds of odd behaviour (unknown commands, late replies …) counted individually per second.
NOTES_MAX: Final = 256
# Characters of a cron expression: a list of every minute of the hour takes 170.
CRON_SIZE_MAX: Final = 1024
# The shortest interval of a schedule: the time between two sweeps.
SCHEDULE_INTERVAL_NS_MIN: Final = 100_000_000
# The absolute value of a worker's weight for a queue: weights are compared, never added, so large values do no harm.
WEIGHT_MAX: Final = 1_000_000_000
# Due delays, expiries and lease timeouts, each, per sweep: one may cost a read from disk. The next sweep, which follows at once, does the rest.
DUE_PER_SWEEP_MAX: Final = 200
# Schedules fired per sweep: computing the next instant of a cron expression takes up to 0.1 ms. The next sweep, which follows at once, fires the rest.
FIRED_PER_SWEEP_MAX: Final = 100
# Cron schedules recomputed per sweep after the wall clock was set back: 60 to 500 microseconds each, 20 ms at most in all.
REWINDS_PER_SWEEP_MAX: Final = 40
# After a restart it is unknown which instants of a cron schedule before the last one fired. If the wall clock was set back by less than this,
# all of them count as fired, as in cron(8). If by more, the schedule follows the clock as it is now.
CRON_REPEAT_NS: Final = 3 * 3600 * 1_000_000_000
# Waiting messages in one record of a checkpoint: 800 kB.
CHECKPOINT_ROWS_MAX: Final = 20_000
# Units of work in one step of a checkpoint: about 3 ms of the event loop.
CHECKPOINT_STEP_COUNT: Final = 3_000
# Pause between two steps of a checkpoint: as long as a step, so that it takes at most half of the event loop's time.
CHECKPOINT_PAUSE_S: Final = 0.003
# Bytes of bodies buffered for one connection before they reach its socket; after that the socket shows whether the peer reads.
OUTPUT_STEP_SIZE: Final = 4 * 1024 * 1024
# Connections that are given new work in one callback after their output was sent.
RELEASED_PER_TURN: Final = 8
# A body up to this many bytes is copied into the output; a larger one is passed by reference.
INLINE_BODY_SIZE_MAX: Final = 16384
# Distinct header texts whose parsed form is cached: most calls of a client have the same text.
HEADER_MEANINGS_MAX: Final = 1024
# A longer header text is parsed each time, so that the cache does not take megabytes.
HEADER_REMEMBERED_SIZE_MAX: Final = 1024
# An incomplete message of which this many bytes were received has to make progress (`limits.unfinished_s`).
UNFINISHED_SIZE_MIN: Final = 4096
# Bytes that count as progress of such a message: 1 kB a second with the default of a minute. A slower sender mainly occupies memory.
UNFINISHED_STEP_SIZE: Final = 64 * 1024
# While such messages exceed their share of memory (runtime/unfinished): without progress for this long a sender is slow; without a byte for
# this long it is stalled; and how long a message waits for memory before stalled ones are ended.
UNFINISHED_SLOW_NS: Final = 100_000_000
UNFINISHED_STILL_NS: Final = 1_000_000_000
UNFINISHED_WAIT_NS: Final = 500_000_000
# At most this much time is counted between two checks: a busy broker did not read in the rest.
UNFINISHED_LOOK_NS_MAX: Final = 100_000_000
# A completed message triggers a check for others at once, but not more often than this.
UNFINISHED_LOOK_NS_MIN: Final = 5_000_000
# Connections with incomplete messages that are read at a time, that are tried at a time, and that one check ends: a few ms in all.
UNFINISHED_LET_ON_MAX: Final = 500
UNFINISHED_TRIED_MAX: Final = 50
UNFINISHED_ENDED_MAX: Final = 50
# Bytes that one read returns at most.
UNFINISHED_READ_SIZE: Final = 256 * 1024
# A peer that read nothing for this long counts as not reading.
DEAF_NS: Final = 1_000_000_000
# The default memory budget: a quarter of what the process may use, and at most this.
MEMORY_SHARE_MAX: Final = 4 * 1024 * 1024 * 1024
# Memory of a broker without messages: interpreter, code, buffers.
PROCESS_SIZE: Final = 64 * 1024 * 1024
# Free memory above this (or a quarter of the budget) is returned to the system: every ten seconds, or as soon as the process has grown by as much
# and uses more than half of the budget. It takes 0.1 ms per megabyte, and the next messages have to allocate their pages again.
UNUSED_SIZE_MAX: Final = 64 * 1024 * 1024
TRIM_INTERVAL_NS: Final = 10_000_000_000
# The smallest memory budget: an eighth of it has to hold a message.
MEMORY_SIZE_MIN: Final = 16 * 1024 * 1024
# A sender that sent fewer bytes in the last two seconds is not paused when memory is short: it is not the cause.
SENDER_SIZE_MIN: Final = 4096
# A sender is paused for this long at most: it may belong to a worker that waits for the answer to a request of its own.
PAUSED_NS_MAX: Final = 10_000_000_000
# Paused peers that `status` lists.
PAUSED_SHOWN_MAX: Final = 20
# Bytes in one connection's write buffer before its peer counts as not reading.
WRITE_BUFFER_SIZE: Final = 1024 * 1024
# The same for a subscriber: its publishes wait in its session, where all subscribers share them, not in the write buffer.
NEWS_BUFFER_SIZE: Final = 32 * 1024
# Bytes of publishes written to such a socket at a time: copies of the shared ones, so a stalled subscriber takes little more than both.
NEWS_WRITE_SIZE: Final = 64 * 1024
# After a read of this many bytes other connections are read first: there is surely more.
TURN_SIZE: Final = 128 * 1024
# Live records carried out of an old segment per sweep: about 5 ms of the event loop. And bytes of a large one: up to 7 ms, 20 MiB a second.
CARRY_STEP_COUNT: Final = 1000
CARRY_STEP_SIZE: Final = 2 * 1024 * 1024
# Open messages visited per sweep, to find the segments in use or the records to carry: 3 to 7 ms on a busy machine.
LIVE_STEP_COUNT: Final = 30_000
# Blocks of memory from this size on are returned to the system when they are freed; below it, getting the pages again would cost too much.
LARGE_BLOCK_SIZE: Final = 256 * 1024
# Bytes of an unfinished message of a dialect outside the package, unless it asks for more: 16 pieces of a read, some milliseconds.
PLAIN_UNFINISHED_SIZE_MAX: Final = 1024 * 1024
# Waiting messages that a start reads from disk, because a client may send them again, and the bytes of records that it reads for them: a
# second or two. They are looked for in steps of so many messages.
EXPIRING_MAX: Final = 100_000
EXPIRING_READ_SIZE: Final = 256 * 1024 * 1024
EXPIRING_STEP: Final = 10_000
# The journal may grow to this many times its maximum while the lake has not copied its facts; then the oldest are deleted anyway.
LAKE_PATIENCE: Final = 2
# On a full disk the lake has this long to copy facts before they are deleted; new work is refused meanwhile.
LAKE_FULL_PATIENCE_NS: Final = 10_000_000_000
# How often retention (age, a full journal) is checked when no segment rolls.
RETENTION_INTERVAL_NS: Final = 5_000_000_000
# A step of the wall clock against the monotonic one by more than this is recorded as a fact.
CLOCK_STEP_NS: Final = 1_000_000_000
# Thread CPU time for which a callback may block the event loop. Longer ones are counted and reported.
LOOP_HOLD_NS: Final = 20_000_000
# A read is processed in parts of this many bytes (2000 of the shortest commands), for this long; the rest follows in the next iteration.
READ_PIECE_SIZE: Final = 64 * 1024
READ_TURN_NS: Final = 5_000_000
# A read up to this size is processed at once: the smallest part has as many bytes.
SMALL_READ_SIZE: Final = 1024
# Messages processed at once, however short: some 5 ms.
MESSAGES_PER_TURN: Final = 1500
# The parts of a worker of this many queues are half as large, of twice as many queues a third, and so on.
QUEUES_PER_PIECE: Final = 16
# Queues in the answer to an eMQP STATUS: about 5 ms of the event loop.
QUEUES_LISTED_MAX: Final = 10_000
# If a sweep comes this long after the last one, the process was not running: peers are not timed out for that time.
STALL_NS: Final = 1_000_000_000
# If the core's time did not advance for longer (facts waited for a slow disk), peers' last signs of life are corrected.
STILL_NS: Final = 50_000_000
# Log lines about peers' faults per second; the rest are counted and reported in one line.
FAULT_LOGS_PER_SECOND: Final = 10
# Percentage of all connections that is reserved for the listeners, in equal shares, and the minimum per listener, so that a flood on one
# leaves the others open. Small, because thousands of workers may use one listener. Never more than half in all.
LISTENER_SHARES_PERCENT: Final = 10
LISTENER_SHARE_MIN: Final = 4
# Connections from one address. A setting (`limits.address_connections_max`): a tenth of the default for all addresses.
ADDRESS_CONNECTIONS_MAX: Final = 1000
# Prefix length of IPv6 addresses that count as one: a host usually has a network of that size.
ADDRESS_PREFIX_V6: Final = 64
# A peer whose first bytes are refused reconnects at once, forever (libzmq: ten times a second): it is logged this often.
FAULT_REPEAT_NS: Final = 60_000_000_000
# Addresses and codes whose last such log line is remembered: about 200 kB. Beyond that the oldest is forgotten and may be logged again.
FAULT_ADDRESSES_MAX: Final = 1000
# One request line on the admin socket: an id or a name, never a body.
ADMIN_REQUEST_SIZE_MAX: Final = 64 * 1024
# Connections on the admin socket: the command line, the web page, an operator's scripts.
ADMIN_CONNECTIONS_MAX: Final = 64
# Pending bytes of a stream to a slow admin client; beyond that, its events are counted instead of sent.
ADMIN_STREAM_SIZE_MAX: Final = 4 * 1024 * 1024
# Entries in one page of an admin list: about 1 MB of JSON and a few ms of the event loop.
ADMIN_PAGE_MAX: Final = 1000
# Messages changed in one step of a bulk command (purge, quarantine retry), so that other work can run in between.
ADMIN_STEP_COUNT: Final = 500
# Queues whose durations are counted separately, about 6 kB each; all others are counted together.
QUEUES_TALLIED_MAX: Final = 5_000
# Open messages that one query of the admin socket examines: a few ms of the event loop.
MESSAGES_LOOKED_AT_MAX: Final = 10_000
# Entries of other queues, or stale ones, that a query of one queue skips: one comparison each.
MESSAGES_PASSED_BY_MAX: Final = 50_000
# Bytes of a body in an answer of the admin socket: enough to recognise it.
BODY_SHOWN_SIZE_MAX: Final = 64 * 1024
# Leased messages in a view of a worker.
HELD_SHOWN_MAX: Final = 100
# A worker that could take waiting messages but has taken none for this long is reported as stuck, whatever it reports itself.
IDLE_NS_MAX: Final = 30_000_000_000
# A message that waits this long although its queue has workers is reported: the workers are too few or too slow.
OLD_MESSAGE_NS: Final = 300_000_000_000
# Facts by which the lake may be behind before that is reported: some 15 s of a broker at full load.
LAKE_BEHIND_MAX: Final = 5_000_000
# Findings of one kind reported at a time: more of them are one problem, not many.
FINDINGS_MAX: Final = 50

# The SDK: pending calls on one connection, and their bytes, which are kept to be sent again. Further callers wait.
CALLS_MAX: Final = 100_000
CALLS_SIZE_MAX: Final = 64 * 1024 * 1024
# The SDK: bytes of publishes that are pending because the publish port is disconnected or does not read. Further publishers wait.
NEWS_SIZE_MAX: Final = 16 * 1024 * 1024
# Settled requests whose outcome is remembered for queries of clients (about 15 MB); older ones are in the journal.
ENDED_REMEMBERED_MAX: Final = 100_000
# A connection's outbox keeps up to this many bytes of memory from tick to tick; a larger one is freed.
OUTBOX_SIZE_KEPT: Final = 16384
# The background scrub of the journal, in bytes per second: 10 GiB in an hour and a half, once a day, with about 1 % of a processor.
SCRUB_RATE: Final = 2 * 1024 * 1024
SCRUB_INTERVAL_S: Final = 86_400
# Records read, and waiting messages scanned, per step (a tenth of a second) after the scrub has found damage.
DAMAGE_CHECK_READS: Final = 100
DAMAGE_CHECK_ROWS: Final = 50_000
# The fact log of the current block keeps up to this many bytes of memory.
LOG_SIZE_KEPT: Final = 1024 * 1024
# A body up to this many bytes is copied once more, so that one call computes its record's CRC; a larger one needs a second call instead.
RECORD_COPY_MAX: Final = 4096
# zlib computes the CRC of a record up to this many bytes, zlib-ng that of a longer one (dragoman/crc).
CRC_SHORT_MAX: Final = 255
# A body of this many bytes is not copied into the fact log: copying megabytes blocks the event loop. For smaller ones a copy is cheaper.
BODY_REFERENCE_SIZE: Final = 64 * 1024
# How long, and up to how many bytes in all, answers are kept for disconnected clients: a reconnect takes seconds, not minutes.
ANSWERS_HELD_NS: Final = 30_000_000_000
ANSWERS_HELD_SIZE_MAX: Final = 16 * 1024 * 1024
# Queues that one rq connection may ever consume, and so the queue ids it gets: each costs about 1 kB until the connection ends.
RQ_QUEUES_MAX: Final = 10_000
# How long a link to another rq controller that will be reconnected waits for the answers to its messages: most jobs end by then, and a queue
# of that controller whose slot was lost waits no longer than this.
RQ_LINK_LINGER_NS: Final = 30_000_000_000
# Messages one rq consumer may have at a time. The original programs store 15 bits of an id.
RQ_IDS_MAX: Final = 32_768
# Bytes of operations that a RISP peer may repeat by sending their last byte alone, until it sends CLEAR: the original programs never do.
RISP_REPEATED_SIZE_MAX: Final = 1024 * 1024

# A Scale0 configuration document: enough for thousands of named workers, too little to exhaust memory.
TREE_SIZE_MAX: Final = 1024 * 1024
TREE_NODES_MAX: Final = 50_000
TREE_DEPTH_MAX: Final = 32
# Peers that Scale0 bans at a time; beyond that, the oldest ban ends early.
BANS_MAX: Final = 10_000
# Distinct services and origins whose encoded headers for Scale0 workers are cached.
SCALE0_PHRASES_MAX: Final = 1024
# Bytes of JSON that are parsed into objects, or of text that is escaped whatever it contains: 6 ms of the event loop at worst. Larger JSON is
# only validated, which takes a third of that, or used as it is.
JSON_READ_SIZE_MAX: Final = 256 * 1024
# Bytes of pingpong results that wait for an earlier one of the same client, all clients together; beyond that, new orders are refused.
EARLY_ANSWERS_SIZE_MAX: Final = 64 * 1024 * 1024

# Permissions of the lake's files and directories, whatever the umask: readable by the group, for a Spark job of another user. Settings.
LAKE_FILE_MODE: Final = 0o640
LAKE_DIRECTORY_MODE: Final = 0o750
# Rows of one incoming file of the lake: about 5 MB, and half a second of a broker at full load.
LAKE_FILE_ROWS: Final = 250_000
# Bytes of texts and bodies in one file, however few rows they are.
LAKE_FILE_BYTES: Final = 64 * 1024 * 1024
# An incoming file is written at least this often while there are facts. A setting (`lake.interval_s`).
LAKE_INTERVAL_S: Final = 5.0
# Incoming files are kept this long after they were merged into history: a stream that reads them may be a day behind.
LAKE_INCOMING_KEEP_S: Final = 86_400.0
# Rows and bytes of one history file: large enough for Spark, small enough to be built in memory.
LAKE_HISTORY_ROWS_MAX: Final = 1_000_000
LAKE_HISTORY_SIZE_MAX: Final = 256 * 1024 * 1024
# This many incoming files are merged however few rows they have: an hour of a quiet broker.
LAKE_PARTS_MAX: Final = 720
# A date is complete when the next one is this old: the facts of its last second are sealed by then.
LAKE_DATE_OVER_S: Final = 3600.0
# Incoming files deleted at a time, between two checks of the journal.
LAKE_DELETES_MAX: Final = 200

# The web page: concurrent requests, including streams (64); additional ones for probes only, so that other users cannot make a broker seem
# dead; and connections, most of them idle browsers. Together far below the usual limit of 1024 file descriptors.
WEB_REQUESTS_MAX: Final = 256
WEB_PROBES_MAX: Final = 32
WEB_CONNECTIONS_MAX: Final = 512

# Characters of a token for the web page: 16 random ones cannot be guessed over a network.
TOKEN_SIZE_MIN: Final = 16

# Open messages whose accepted facts the trace exporter remembers: about 40 MB. A setting (`otel.open_max`).
OTEL_OPEN_MAX: Final = 100_000

# Messages of one exported test: more would be unreadable, and take the simulator minutes.
EXPORT_MESSAGES_MAX: Final = 2000

# A search through the journal: bytes read for one answer (whole segments, so up to one more), some seconds of a web server thread; and as
# many more to reconstruct the messages found if there is no index.
FIND_SIZE_MAX: Final = 256 * 1024 * 1024
# Messages in one answer at most, and messages reconstructed from their facts for it: some turn out not to match.
FIND_ROWS_MAX: Final = 1000
FIND_TOLD_MAX: Final = 2000
# Messages reconstructed at a time: each needs at most three keys of an index (INDEX_KEYS_MAX).
FIND_TOLD_STEP: Final = 200
# Settled messages remembered in a search for open ones: about 100 MB; beyond that, messages are reconstructed to find out.
FIND_ENDED_MAX: Final = 1_000_000

# Characters of an exception's or a peer's text in a log line, an answer or an error: enough to recognise what happened.
ERROR_TEXT_SIZE_MAX: Final = 4096
# Frames of one exception, parts (frames, texts, headings of causes) and characters of a whole traceback in a log: its end is the most useful.
TRACEBACK_FRAMES_MAX: Final = 32
TRACEBACK_PARTS_MAX: Final = 128
TRACEBACK_SIZE_MAX: Final = 32 * 1024
# Characters of one log line, without its traceback; of one value in a line of the broker's own log, and values in one list there.
LOG_LINE_SIZE_MAX: Final = 64 * 1024
LOG_VALUE_SIZE_MAX: Final = 4096
LOG_VALUES_MAX: Final = 1000
# Characters of a name from a request (a path, a queue, a topic) in an error or a log line.
NAME_SHOWN_SIZE_MAX: Final = 200
