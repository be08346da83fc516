"""Every bound of the broker that is not a setting, and the default of those that are: unit in the name, reason beside it."""

from __future__ import annotations

from typing import Final

# Stands for a bound that is not set.
NO_BOUND: Final = 1 << 62
# One message, all frames together. A setting (`limits.message_size_max`); 64 MiB carries any sane job and bounds a hostile one.
MESSAGE_SIZE_MAX: Final = 64 * 1024 * 1024
# Frames in one message. The longest legal one of the five dialects has 9; routing stacks add a few.
FRAMES_MAX: Final = 64
# Entries of a line whose messages are elsewhere by now, before the line is rebuilt: bounds the memory a flood of cancels leaves.
STALE_ENTRIES_MAX: Final = 1024
# Lines in one lane: clients beyond share one, chosen by their address. A line costs about 2 kB, and some clients have a new
# address for every message.
LINES_MAX: Final = 4096
# Dismissed workers remembered beyond their connections: an operator's own doing, about 300 bytes each.
DISMISSALS_MAX: Final = 10_000
# Those among them that are not connected and that a list of workers names.
KEPT_OUT_SHOWN_MAX: Final = 100
# A message's priority: 0 (the usual) to 9 (first). Ten lanes are what people can reason about.
PRIORITY_MAX: Final = 9
# Bytes of a client's message id, of an address, of a dedupe key: each has a one-byte length in the journal.
ID_SIZE_MAX: Final = 255
# Bytes of a queue's or topic's name.
NAME_SIZE_MAX: Final = 255
# Bytes of one message's headers.
HEADERS_SIZE_MAX: Final = 65535
# Queues a broker keeps. A name costs about 1 kB for ever, and names come from peers.
QUEUES_MAX: Final = 100_000
# Queues one worker may name in one message, and so the queues it serves: each of its free slots is matched against all of them.
SERVED_MAX: Final = 1000
# Bytes of the queue list of one INFORM: 1000 names of 250 bytes.
SERVED_TEXT_SIZE_MAX: Final = 256 * 1024
# Idle queues are looked for this many at a time, ten times a second: some tenths of a millisecond; and this many are forgotten at most.
QUEUES_LOOKED_AT_STEP: Final = 1000
QUEUES_FORGOTTEN_STEP: Final = 200
# No queue is forgotten this soon after a start by itself: its workers may still be on their way back.
FORGET_AFTER_START_NS: Final = 3_600_000_000_000
# The largest number of a queue: facts have 4 bytes for it.
QUEUE_NO_MAX: Final = 2**31 - 1
# Durable schedules; each is checked when it is due and written whole into every checkpoint.
SCHEDULES_MAX: Final = 10_000
# Slots one worker may hold open: READYs beyond are counted, not served, so a flood of READY cannot claim a whole queue.
SLOTS_MAX: Final = 100_000
# Messages brought back from disk at a time when a line's head runs short: about 3 ms of the loop.
REFILL_COUNT: Final = 1000
# Bytes of bodies brought back at a time, whatever their count: a line of large ones must not fill memory at once.
REFILL_SIZE: Final = 16 * 1024 * 1024
# The same while memory is short: little for each of many queues that are being emptied.
REFILL_COUNT_CROWDED: Final = 32
REFILL_SIZE_CROWDED: Final = 1024 * 1024
# What a message in memory counts for beside its body: its object, its ids, its entries in the indexes.
MESSAGE_SIZE: Final = 1024
# What a waiting message counts for that is on disk only: five columns of 8 bytes (core/tail).
TAIL_ENTRY_SIZE: Final = 40
# Messages leased, or taken back from a worker that is lost, in one go: each may cost a read from disk. The rest follows in the next turns.
LEASES_PER_STEP_MAX: Final = 500
# Retry backoff doubles up to this many times before the setting's ceiling takes over (2**20 initial steps).
BACKOFF_DOUBLINGS_MAX: Final = 20
# A ZMTP identity (RFC 37).
IDENTITY_SIZE_MAX: Final = 255
# One ZMTP command after the handshake: room for any topic prefix, far below what would hurt to buffer.
COMMAND_SIZE_MAX: Final = 64 * 1024
# One ZMTP command of the handshake: a stranger's bytes, so less. READY needs about 50.
HANDSHAKE_COMMAND_SIZE_MAX: Final = 8 * 1024
# Properties in one READY. libzmq sends 2 and the user's own.
METADATA_COUNT_MAX: Final = 64

# One journal segment. A setting (`journal.segment_size`); big enough that rolls are rare, small enough to drop history in steps.
SEGMENT_SIZE: Final = 64 * 1024 * 1024
# Smallest segment worth its header and its directory entry.
SEGMENT_SIZE_MIN: Final = 64 * 1024
# Behind a checkpoint, for the first facts after it; on a full disk, for the block that vouches for it, after which settled segments go.
CHECKPOINT_ROOM_SIZE: Final = 16 * 1024
CHECKPOINT_ROOM_SIZE_MIN: Final = 1024
# All journal files together. A setting (`journal.size_max`).
JOURNAL_SIZE_MAX: Final = 10 * 1024 * 1024 * 1024
# Bytes that the journal leaves free on its disk, by letting settled history go. A setting (`journal.free_min`): a spare segment, a
# checkpoint, and what the lake writes until it has caught up.
JOURNAL_FREE_MIN: Final = 256 * 1024 * 1024
# On a nearly full disk the spare segment may be smaller, down to this part of a segment: 8 MiB settle some 80 000 leases.
SPARE_SHARE_MIN: Final = 8
# Records in one block; its size field has 32 bits and one tick never gathers more than the uncommitted bound and one message.
BLOCK_SIZE_MAX: Final = 1024 * 1024 * 1024
# A block of more bytes is written by a thread: a megabyte takes about 1 ms of the loop.
WRITTEN_ASIDE_SIZE: Final = 4 * 1024 * 1024
# Bytes appended and not yet synced; they are held in memory too, for a sync that fails.
UNCOMMITTED_SIZE_MAX: Final = 64 * 1024 * 1024
# Durability `os` asks for a sync when this much is unsynced, long before the bound above is met.
UNSYNCED_SIZE_SOON: Final = 16 * 1024 * 1024
# Durability `os` syncs this often, so that power loss costs at most about a second.
SYNC_INTERVAL_NS: Final = 1_000_000_000
# A checkpoint is written when this many times its size was journaled since the last: at most a quarter more bytes.
CHECKPOINT_AMORTISE: Final = 4
# Records of a segment are carried forward when less than this part of it is live.
CARRY_LIVE_PERCENT: Final = 25
# Live records whose size is looked at to tell how much of a segment is live: a read of four bytes each, of all segments together about 5 ms.
SEGMENT_SAMPLES_MAX: Final = 8
# Waiting messages of one line that are candidates for it.
TAIL_SAMPLES_MAX: Final = 10_000
# Segment files held open for reading bodies; the rest are opened again when needed.
OPEN_SEGMENTS_MAX: Final = 256
# The newest segment is indexed in steps of so many bytes: what is behind the last one is looked through by every trace.
INDEX_STEP_SIZE: Final = 4 * 1024 * 1024
# Room for so many segments is left to the journal before anything is indexed.
INDEX_SEGMENTS_KEPT: Final = 4
# Keys looked up in one segment's index; a trace of more (an id used again and again) reads the segment instead.
INDEX_KEYS_MAX: Final = 2000
# Topics counted one by one in a second's `published` facts; the rest share one nameless count.
TOPICS_COUNTED_MAX: Final = 1000
# Prefixes one subscriber may hold.
SUBSCRIPTIONS_MAX: Final = 10_000
# Kinds of oddities (unknown commands, late replies …) counted one by one per second.
NOTES_MAX: Final = 256
# Characters of a cron expression: every minute of the hour listed takes 170.
CRON_SIZE_MAX: Final = 1024
# The shortest interval of a schedule: what is due is looked for this often.
SCHEDULE_INTERVAL_NS_MIN: Final = 100_000_000
# A worker's weight for a queue, up or down: weights are compared, never added, so this is room for any taste.
WEIGHT_MAX: Final = 1_000_000_000
# Delays, expiries and leases that are over, each, in one sweep: one may cost a read from disk. The rest is due in the next sweep, at once.
DUE_PER_SWEEP_MAX: Final = 200
# Schedules fired in one sweep: the next instant of a cron expression takes up to 0.1 ms. The rest is fired in the next sweep, at once.
FIRED_PER_SWEEP_MAX: Final = 100
# Cron schedules whose next instant is found anew in one sweep after the wall clock was set back: 60 to 500 microseconds each, so that no
# sweep takes longer than 20 ms.
REWINDS_PER_SWEEP_MAX: Final = 40
# After a restart it is not known which of a cron schedule's instants before its last one had their turn. If the wall clock was set back by less
# than this, they all had: as cron(8) treats it. Set back by more, the schedule goes by the clock as it is.
CRON_REPEAT_NS: Final = 3 * 3600 * 1_000_000_000
# Waiting messages in one record of a checkpoint: 800 kB.
CHECKPOINT_ROWS_MAX: Final = 20_000
# Things one step of a checkpoint walks over before others get their turn: about 3 ms of the loop.
CHECKPOINT_STEP_COUNT: Final = 3_000
# Between two steps of a checkpoint: as long as one takes, so that it costs at most half of the loop.
CHECKPOINT_PAUSE_S: Final = 0.003
# A body up to this many bytes is copied into the output beside its neighbours; a larger one is passed on by reference.
INLINE_BODY_SIZE_MAX: Final = 16384
# Distinct header texts whose meaning is remembered: a client's calls mostly share one.
HEADER_MEANINGS_MAX: Final = 1024
# A header text longer than this is read each time: remembering must not hold megabytes.
HEADER_REMEMBERED_SIZE_MAX: Final = 1024
# Of a message that is cut short so many bytes have come: from there on it is expected to go on (`limits.unfinished_s`).
UNFINISHED_SIZE_MIN: Final = 4096
# Bytes that count as progress of such a message: 1 kB a second with the default of a minute. Any slower is holding memory, not sending.
UNFINISHED_STEP_SIZE: Final = 64 * 1024
# The memory budget where none is set: a quarter of what the process may use, and not more than this.
MEMORY_SHARE_MAX: Final = 4 * 1024 * 1024 * 1024
# A smaller budget leaves no room for a message of an eighth of it.
MEMORY_SIZE_MIN: Final = 16 * 1024 * 1024
# A sender that sent less than this in the last two seconds is not paused when memory is short: it is not the cause.
SENDER_SIZE_MIN: Final = 4096
# A sender is paused for so long at most: it may belong to a worker that waits for an answer of its own.
PAUSED_NS_MAX: Final = 10_000_000_000
# Paused peers that `status` names.
PAUSED_SHOWN_MAX: Final = 20
# Bytes that may wait in one connection's socket buffer before its peer counts as not reading.
WRITE_BUFFER_SIZE: Final = 1024 * 1024
# The same for a subscriber to topics: its news waits in its session, shared with all others that wait for it, not in its socket's buffer.
NEWS_BUFFER_SIZE: Final = 32 * 1024
# News given to such a socket at a time: copied from what is shared, so a stalled subscriber costs little more than both.
NEWS_WRITE_SIZE: Final = 64 * 1024
# A read of this many bytes ends its connection's turn: more is surely there, and the others are to be heard first.
TURN_SIZE: Final = 128 * 1024
# Live records carried out of an old segment per sweep: about 5 ms of the loop.
CARRY_STEP_COUNT: Final = 1000
# The journal may take so many times its size while the lake cannot take its facts; then the oldest go all the same.
LAKE_PATIENCE: Final = 2
# On a full disk the lake is given this long to take what is to go; new work is refused meanwhile.
LAKE_FULL_PATIENCE_NS: Final = 10_000_000_000
# How often retention is looked at when nothing rolls (age, a full journal).
RETENTION_INTERVAL_NS: Final = 5_000_000_000
# The wall clock moved by more than this against the monotonic one: a fact.
CLOCK_STEP_NS: Final = 1_000_000_000
# No callback may hold the loop for longer: thread CPU. What does is counted and named.
LOOP_HOLD_NS: Final = 20_000_000
# What was read at once is taken in pieces of so many bytes, two thousand of the shortest commands, for so long; the rest in the next turn.
READ_PIECE_SIZE: Final = 64 * 1024
READ_TURN_NS: Final = 5_000_000
# A worker of so many queues has half of it at a time, of twice as many a third, and so on.
QUEUES_PER_PIECE: Final = 16
# Queues that an eMQP STATUS lists: about 5 ms of the loop.
QUEUES_LISTED_MAX: Final = 10_000
# The loop came this much later than it wanted: it was not running, and nobody's silence in that time is held against them.
STALL_NS: Final = 1_000_000_000
# The core's time stood still for longer, because a slow disk held facts back: signs of life of that instant are put right.
STILL_NS: Final = 50_000_000
# Log lines about peers' faults per second; the rest are counted and told once.
FAULT_LOGS_PER_SECOND: Final = 10
# Part of the connections that is guaranteed to the listeners, in equal shares, and how many each has at least: a flood on one must leave
# the others open. Small, because a fleet of thousands of workers uses one listener. Never more than half in all.
LISTENER_SHARES_PERCENT: Final = 10
LISTENER_SHARE_MIN: Final = 4
# Connections from one address. A setting (`limits.address_connections_max`): a tenth of the default of all.
ADDRESS_CONNECTIONS_MAX: Final = 1000
# Bits of an IPv6 address that count as one address: a host is given a network of that size.
ADDRESS_PREFIX_V6: Final = 64
# A peer whose first bytes are refused comes back at once, for ever (libzmq: ten times a second): its line is written this often.
FAULT_REPEAT_NS: Final = 60_000_000_000
# Addresses and codes whose last such line is remembered: about 200 kB. Beyond, the oldest is forgotten and may be written again.
FAULT_ADDRESSES_MAX: Final = 1000
# One request line on the admin socket: an id or a name, never a body.
ADMIN_REQUEST_SIZE_MAX: Final = 64 * 1024
# Connections on the admin socket: the command line, the web page, an operator's scripts.
ADMIN_CONNECTIONS_MAX: Final = 64
# Bytes of a stream that may wait for a slow asker; beyond, its events are counted instead of sent.
ADMIN_STREAM_SIZE_MAX: Final = 4 * 1024 * 1024
# Entries in one page of an admin list: about 1 MB of JSON and a few ms of the loop.
ADMIN_PAGE_MAX: Final = 1000
# Messages one step of an admin's bulk command (purge, quarantine retry) touches before others get their turn.
ADMIN_STEP_COUNT: Final = 500
# Queues whose durations are counted one by one, about 6 kB each; those of the rest are counted together.
QUEUES_TALLIED_MAX: Final = 5_000
# The same for what the web page reads of the time before the start; the page of a later one counts from the start on.
PAST_QUEUES_MAX: Final = 1_000
# Numbers of quarantined messages remembered while facts are counted: about 100 bytes each.
ASIDE_MAX: Final = 100_000
# Open messages one question of the admin socket looks at: a few ms of the loop.
MESSAGES_LOOKED_AT_MAX: Final = 10_000
# Entries of other queues, or of none any more, that a look at one queue passes by: one comparison each.
MESSAGES_PASSED_BY_MAX: Final = 50_000
# Bytes of a body that the admin socket shows: enough to recognise it.
BODY_SHOWN_SIZE_MAX: Final = 64 * 1024
# Messages in a worker's hands that its view lists.
HELD_SHOWN_MAX: Final = 100
# A worker that could take what waits and has taken nothing for this long does not work, whatever it says.
IDLE_NS_MAX: Final = 30_000_000_000
# A message that waits this long although its queue has workers: they are too few or too slow.
OLD_MESSAGE_NS: Final = 300_000_000_000
# Facts that the lake does not have yet before that is worth a word: some 15 s of a broker at full load.
LAKE_BEHIND_MAX: Final = 5_000_000
# Findings of one kind told at a time: who has more of them has one problem, not fifty.
FINDINGS_MAX: Final = 50

# The SDK: calls under way on one connection, and their bytes, which are kept for sending again. Further callers wait their turn.
CALLS_MAX: Final = 100_000
CALLS_SIZE_MAX: Final = 64 * 1024 * 1024
# Bytes of news an SDK holds for a publish port that is away or does not read. Further publishers wait their turn.
NEWS_SIZE_MAX: Final = 16 * 1024 * 1024
# Ended requests whose outcome is remembered for a client that asks (about 15 MB); older ones are in the journal.
ENDED_REMEMBERED_MAX: Final = 100_000
# A connection's outbox up to this many bytes keeps its room from tick to tick; a larger one gives it back.
OUTBOX_SIZE_KEPT: Final = 16384
# The background scrub of the journal: 10 GiB in an hour and a half, once a day, for about 1 % of a processor meanwhile.
SCRUB_RATE: Final = 2 * 1024 * 1024
SCRUB_INTERVAL_S: Final = 86_400
# Records read, and rows of waiting messages looked at, in one step (a tenth of a second) after the scrub has found damage.
DAMAGE_CHECK_READS: Final = 100
DAMAGE_CHECK_ROWS: Final = 50_000
# The log of the block being filled keeps its room up to this many bytes.
LOG_SIZE_KEPT: Final = 1024 * 1024
# A body up to this many bytes is copied once more, so that its record's CRC is one call; a larger one costs a second call instead.
RECORD_COPY_MAX: Final = 4096
# How long, and for how many bytes in all, answers are kept for clients that are away: a reconnect takes seconds, not minutes.
ANSWERS_HELD_NS: Final = 30_000_000_000
ANSWERS_HELD_SIZE_MAX: Final = 16 * 1024 * 1024
# Queues one rq connection may consume in its life, and so the queue ids it is given: each costs about 1 kB until it ends.
RQ_QUEUES_MAX: Final = 10_000
# How long a link to another rq controller that is to be made anew waits for answers to what it holds: most jobs end by then, and a queue
# of that controller whose slot is lost waits no longer than this.
RQ_LINK_LINGER_NS: Final = 30_000_000_000
# Messages one rq consumer may have at a time. The original's programs keep 15 bits of an id.
RQ_IDS_MAX: Final = 32_768
# Bytes of operations that a RISP peer repeats by their last byte alone, until it says CLEAR: none of the originals does that.
RISP_REPEATED_SIZE_MAX: Final = 1024 * 1024

# A Scale0 configuration document: room for thousands of workers by name, nothing for whoever wants to fill memory.
TREE_SIZE_MAX: Final = 1024 * 1024
TREE_NODES_MAX: Final = 50_000
TREE_DEPTH_MAX: Final = 32
# Peers that Scale0 holds for hostile at a time; beyond, the oldest ban ends early.
BANS_MAX: Final = 10_000
# Distinct services and origins whose words towards Scale0 workers are kept ready.
SCALE0_PHRASES_MAX: Final = 1024
# Bytes of pingpong results that wait for an earlier one of the same client, all clients together: beyond, new orders are refused.
EARLY_ANSWERS_SIZE_MAX: Final = 64 * 1024 * 1024

# Permissions of the lake's files and directories, whatever the umask: read by the group, for a Spark of another user. Settings.
LAKE_FILE_MODE: Final = 0o640
LAKE_DIRECTORY_MODE: Final = 0o750
# Rows of one incoming file of the lake: about 5 MB, and half a second of a broker at full load.
LAKE_FILE_ROWS: Final = 250_000
# Bytes of texts and bodies gathered for one file before it is written, however few rows they are.
LAKE_FILE_BYTES: Final = 64 * 1024 * 1024
# An incoming file is written at least this often while there are facts. A setting (`lake.interval_s`).
LAKE_INTERVAL_S: Final = 5.0
# Incoming files stay this long after they were joined into history: a stream that reads them may be a day behind.
LAKE_INCOMING_KEEP_S: Final = 86_400.0
# Rows and bytes of one history file: large enough for Spark, small enough to be made in memory.
LAKE_HISTORY_ROWS_MAX: Final = 1_000_000
LAKE_HISTORY_SIZE_MAX: Final = 256 * 1024 * 1024
# So many incoming files are joined however few rows they have: an hour of a quiet broker.
LAKE_PARTS_MAX: Final = 720
# A date is over when the clock is this far into the next one: facts of its last second are sealed by then.
LAKE_DATE_OVER_S: Final = 3600.0
# Incoming files deleted in one go, between two looks at the journal.
LAKE_DELETES_MAX: Final = 200

# The web page: requests at a time, streams (64) included; more for probes alone, so that nobody who looks, or only connects, makes a broker seem
# dead; and connections, most of them idle browsers. Together far below the 1024 descriptors that every system gives.
WEB_REQUESTS_MAX: Final = 256
WEB_PROBES_MAX: Final = 32
WEB_CONNECTIONS_MAX: Final = 512

# Characters of a token for the web page: 16 random ones cannot be guessed over a network.
TOKEN_SIZE_MIN: Final = 16

# Open messages of which the exporter of traces remembers what only their acceptance said: about 40 MB. A setting (`otel.open_max`).
OTEL_OPEN_MAX: Final = 100_000

# Messages of one exported test: more would be read by nobody, and take the simulator minutes.
EXPORT_MESSAGES_MAX: Final = 2000

# A search through the journal: bytes read for one answer (whole segments, so up to one more), some seconds of a web page's thread; and as
# many more where there is no index that would tell of what was found.
FIND_SIZE_MAX: Final = 256 * 1024 * 1024
# Messages one answer lists at most, and messages told from their facts for it: some turn out to be others.
FIND_ROWS_MAX: Final = 1000
FIND_TOLD_MAX: Final = 2000
# Messages told at a time: each takes three keys of an index at most (INDEX_KEYS_MAX).
FIND_TOLD_STEP: Final = 200
# Ends remembered while open messages are looked for: about 100 MB; beyond, messages are told one by one.
FIND_ENDED_MAX: Final = 1_000_000

# Characters of an exception's or a peer's text in a log line, an answer or an error: enough to recognise what happened.
ERROR_TEXT_SIZE_MAX: Final = 4096
# Frames of one exception, parts (frames, texts, headings of causes) and characters of a whole traceback in a log: its end says most.
TRACEBACK_FRAMES_MAX: Final = 32
TRACEBACK_PARTS_MAX: Final = 128
TRACEBACK_SIZE_MAX: Final = 32 * 1024
# Characters of one log line, its traceback apart; of one value in a line of the broker's own log, and values in one list there.
LOG_LINE_SIZE_MAX: Final = 64 * 1024
LOG_VALUE_SIZE_MAX: Final = 4096
LOG_VALUES_MAX: Final = 1000
# Characters of a name out of a request (a path, a queue, a topic) in an error or a log line.
NAME_SHOWN_SIZE_MAX: Final = 200
