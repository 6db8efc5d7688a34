"""Every metric that a hub exposes; docs/metrics.md is made from this.

Those of agreements stand in agreement_metrics.py.
"""

from itertools import chain

from streaming.metrics.agreement_metrics import AGREEMENTS
from streaming.metrics.metric import Metric

# -- versions -------------------------------------------------------------------------------------

BUILD_INFO = Metric(
    "slackwater_build_info",
    "The versions that the hub runs on, as labels; always 1.",
    "count by (version) (slackwater_build_info)",
    ("version", "python", "spark", "delta"),
)
WIRE_VERSION = Metric(
    "slackwater_wire_version",
    "The newest version of the wire format that the hub understands.",
    "max(slackwater_wire_version) != min(slackwater_wire_version)",
)
FORMAT_VERSION = Metric(
    "slackwater_state_format_version",
    "The format number of the stored state.",
    "slackwater_state_format_version",
)
CONFIG_VERSION = Metric(
    "slackwater_config_version",
    "The number of the configuration in force; it grows with each that is started or applied.",
    "changes(slackwater_config_version[1d])",
)

# -- the hub --------------------------------------------------------------------------------------

HUB_EPOCH = Metric(
    "slackwater_hub_epoch",
    "The last committed hub epoch; every batch that judges or refreshes something makes one.",
    "rate(slackwater_hub_epoch[5m])",
)
GENERATION = Metric(
    "slackwater_hub_generation",
    "The generation of the hub; it grows when a restored state is recovered.",
    "changes(slackwater_hub_generation[1d])",
)
BATCHES = Metric(
    "slackwater_batches_total",
    "Committed batches since the state was made.",
    "rate(slackwater_batches_total[5m])",
)
SLOW_BATCHES = Metric(
    "slackwater_slow_batches_total",
    "Batches that took longer than hub.trigger_ms; Spark warns of each, which the hub's log omits.",
    "rate(slackwater_slow_batches_total[5m]) / rate(slackwater_batches_total[5m])",
)
BATCH_SECONDS = Metric(
    "slackwater_batch_seconds",
    "How long a batch took from its plan to the delivery of what it sends.",
    "histogram_quantile(0.99, rate(slackwater_batch_seconds_bucket[5m]))",
    buckets=(0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 300),
)
PHASE_SECONDS = Metric(
    "slackwater_batch_phase_seconds",
    "How long a phase of a batch took: read, intake, judge, log, write, commit, publish, upkeep.",
    "sum by (phase) (rate(slackwater_batch_phase_seconds_sum[5m]))",
    ("phase",),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
)
UNDER_WAY = Metric(
    "slackwater_batch_under_way_seconds",
    "How long the present batch is under way; 0: none is. The hub ends itself at"
    " hub.batch_timeout_s.",
    "slackwater_batch_under_way_seconds > 120",
)
LAST_COMMIT = Metric(
    "slackwater_last_commit_timestamp_seconds",
    "When the last batch was committed; a hub at rest commits once a minute at most.",
    "time() - slackwater_last_commit_timestamp_seconds",
)
LAST_POLL = Metric(
    "slackwater_last_poll_timestamp_seconds",
    "When the hub last reached Kafka; it polls every two seconds.",
    "time() - slackwater_last_poll_timestamp_seconds > 30",
)
READY = Metric(
    "slackwater_ready",
    "1: the hub reads its topics and reaches Kafka, or stands by, as /readyz says; 0: it does not.",
    "slackwater_ready == 0",
)
HUBS_SEEN = Metric(
    "slackwater_hubs_seen",
    "Hub processes that worked on this state in the last minute, this one included; more than one"
    " is one too many.",
    "slackwater_hubs_seen > 1",
)
WINDOW_ROWS = Metric(
    "slackwater_window_rows",
    "Rows in memory for judging (limits.window_rows).",
    "max_over_time(slackwater_window_rows[1h])",
)
ROWS_LAG = Metric(
    "slackwater_rows_lag_epochs",
    "Hub epochs that table `rows` is behind; it is brought up to date while the batches go on.",
    "slackwater_rows_lag_epochs > 10000",
)

# -- input ----------------------------------------------------------------------------------------

RECORDS_READ = Metric(
    "slackwater_records_read_total",
    "Records of a replica's changes topic up to where committed batches have read it.",
    "sum by (replica) (rate(slackwater_records_read_total[5m]))",
    ("replica",),
)
UNREAD = Metric(
    "slackwater_unread_records",
    "Records of a replica's changes topic that no batch has read, as of the last poll.",
    "slackwater_unread_records > 100000",
    ("replica",),
)
CHANGES = Metric(
    "slackwater_changes_total",
    "Changes of a replica that were judged, by verdict: accepted, adopted (a row of a snapshot that"
    " was there), rejected or quarantined.",
    "sum by (replica) (rate(slackwater_changes_total[5m]))",
    ("replica", "verdict"),
)
DUPLICATES = Metric(
    "slackwater_duplicates_total",
    "Records of a replica that came again and were dropped.",
    "increase(slackwater_duplicates_total[1h])",
    ("replica",),
)
LATE = Metric(
    "slackwater_late_total",
    "Changes that came after a later one of their replica had been judged; they are in quarantine.",
    "increase(slackwater_late_total[1h]) > 0",
    ("replica",),
)
QUARANTINED = Metric(
    "slackwater_quarantined_total",
    "Records of a replica that were quarantined, by reason.",
    "sum by (reason) (increase(slackwater_quarantined_total[1h]))",
    ("replica", "reason"),
)
QUARANTINE = Metric(
    "slackwater_quarantine_records",
    "Records that are in quarantine: nobody has released or dropped them.",
    "sum(slackwater_quarantine_records) > 0",
    ("reason",),
)
KEPT_RECORDS = Metric(
    "slackwater_replica_quarantine_records",
    "Records of a replica that are in quarantine.",
    "slackwater_replica_quarantine_records > 0",
    ("replica",),
)
KEPT_BYTES = Metric(
    "slackwater_replica_quarantine_bytes",
    "Bytes that the state keeps of a replica's records in quarantine.",
    "slackwater_replica_quarantine_bytes",
    ("replica",),
)
KEPT_RATIO = Metric(
    "slackwater_replica_quarantine_budget_ratio",
    "The part of limits.quarantine_bytes or limits.quarantine_records that a replica has used; from"
    " 1 on only the head of a further record is kept.",
    "slackwater_replica_quarantine_budget_ratio >= 0.8",
    ("replica",),
)
PENDING = Metric(
    "slackwater_pending_changes",
    "Changes that wait: uncommitted (pending), or committed and not eligible yet (waiting).",
    "sum by (replica) (slackwater_pending_changes)",
    ("replica", "state"),
)
PENDING_OLDEST = Metric(
    "slackwater_pending_oldest_seconds",
    "The age of a replica's oldest uncommitted change; 0: there is none.",
    "max(slackwater_pending_oldest_seconds) > 600",
    ("replica",),
)
KAFKA_BEHIND = Metric(
    "slackwater_kafka_offsets_behind",
    "Offsets that the hub is behind the end of a topic: avg, max and min over all topics.",
    'slackwater_kafka_offsets_behind{statistic="max"}',
    ("statistic",),
)

# -- conflicts ------------------------------------------------------------------------------------

CONFLICTS = Metric(
    "slackwater_conflicts_total",
    "Recorded conflicts by kind, the table's function, table, and the replica that lost.",
    "sum by (table, kind) (rate(slackwater_conflicts_total[5m]))",
    ("kind", "function", "table", "replica"),
)
REFRESHES = Metric(
    "slackwater_refreshes_total",
    "Rows that were sent to a replica to correct it.",
    "sum by (replica) (rate(slackwater_refreshes_total[5m]))",
    ("replica", "table"),
)
REFUSED_ROWS = Metric(
    "slackwater_refused_rows",
    "Rows that a replica's database refused and has not taken since.",
    "slackwater_refused_rows > 0",
    ("replica",),
)
LACKING_COLUMNS = Metric(
    "slackwater_lacking_columns",
    "Columns that a replica is sent and its database lacks: rows wait for them, among the refused.",
    "slackwater_lacking_columns > 0",
    ("replica",),
)
DIFFERING_ROWS = Metric(
    "slackwater_differing_rows",
    "Rows that a replica may hold otherwise than the hub, by cause; counted up to 1,000 in all."
    " Cause unnamed: all its records in quarantine that name no row.",
    "sum by (replica) (slackwater_differing_rows) > 0",
    ("replica", "cause"),
)
HANDLING = Metric(
    "slackwater_conflict_handling",
    "1: the replica has not reflected the refreshes of its last conflict yet.",
    "avg_over_time(slackwater_conflict_handling[1h])",
    ("replica",),
)
LOCAL_WRITES = Metric(
    "slackwater_local_writes",
    "Rows that were written at one replica only, since a comparison of their table found no"
    " difference or an operator accepted them.",
    "slackwater_local_writes > 0",
    ("replica", "table"),
)

UNKNOWN_TOPICS = Metric(
    "slackwater_unknown_topics",
    "How many changes topics under the prefix are of no replica, so that nobody reads them.",
    "slackwater_unknown_topics > 0",
)
PACKET_PROBLEMS = Metric(
    "slackwater_packet_problems",
    "How many packets, or folders of packets, need a person; `slackwater status` names them.",
    "slackwater_packet_problems > 0",
)

# -- replicas -------------------------------------------------------------------------------------

REPLICA_STATE = Metric(
    "slackwater_replica_state",
    "1 for the state that the replica is in, 0 for all others.",
    'slackwater_replica_state{state="input_lost"} == 1',
    ("replica", "state"),
)
REPLICA_PAUSED = Metric(
    "slackwater_replica_paused",
    "1: the replica has limits.open_transactions open transactions, and its topic is not read.",
    "slackwater_replica_paused == 1",
    ("replica",),
)
REPLICA_UNREADABLE = Metric(
    "slackwater_replica_unreadable",
    "1: Kafka does not let the hub read the replica's topic; the hub's log says what is refused.",
    "slackwater_replica_unreadable == 1",
    ("replica",),
)
LAST_SEEN = Metric(
    "slackwater_replica_last_seen_timestamp_seconds",
    "The time of the replica's newest record that a batch has read; an agent sends one every ten"
    " seconds.",
    "time() - slackwater_replica_last_seen_timestamp_seconds > 60",
    ("replica",),
)
RECOVERY_POINT = Metric(
    "slackwater_replica_recovery_point_seconds",
    "What would be lost if this replica died now: at most what it wrote in so many seconds, because"
    " the hub has all before that, unless its agent's journal has a backlog.",
    "max(slackwater_replica_recovery_point_seconds)",
    ("replica",),
)
REPLICA_EPOCH = Metric(
    "slackwater_replica_epoch",
    "The replica's own epoch: how many batches of the hub it has applied.",
    "rate(slackwater_replica_epoch[5m])",
    ("replica",),
)
MRE = Metric(
    "slackwater_replica_mre",
    "The max replicated epoch: the hub epoch up to which the replica's writes have seen all.",
    "scalar(slackwater_hub_epoch) - slackwater_replica_mre",
    ("replica",),
)
MRE_AGE = Metric(
    "slackwater_replica_mre_age_seconds",
    "Since the first hub epoch above the MRE was committed; 0: there is none. What the replica"
    " writes now is judged as of then.",
    "max(slackwater_replica_mre_age_seconds) > 300",
    ("replica",),
)
RUV_AGE = Metric(
    "slackwater_replica_ruv_age_seconds",
    "Since the time of the replica's largest CSN that the hub has.",
    "slackwater_replica_ruv_age_seconds",
    ("replica",),
)
CLOCK_AHEAD = Metric(
    "slackwater_replica_clock_ahead_seconds",
    "How far the replica's largest CSN is ahead of the time of its last record; from"
    " limits.skew_s on its changes are quarantined.",
    "slackwater_replica_clock_ahead_seconds > 6 * 3600",
    ("replica",),
)

# -- storage and certificates ---------------------------------------------------------------------

TABLE_VERSION = Metric(
    "slackwater_delta_table_version",
    "The version of a table of the state.",
    "rate(slackwater_delta_table_version[1h])",
    ("table",),
)
TABLE_FILES = Metric(
    "slackwater_delta_table_files",
    "Data files of a table's newest version.",
    "slackwater_delta_table_files > 1000",
    ("table",),
)
TABLE_BYTES = Metric(
    "slackwater_delta_table_bytes",
    "Bytes of the data files of a table's newest version.",
    "sum(slackwater_delta_table_bytes)",
    ("table",),
)
CHECKPOINT_TIME = Metric(
    "slackwater_delta_checkpoint_timestamp_seconds",
    "When the newest checkpoint of a table's log was written; tables without one are left out.",
    "time() - slackwater_delta_checkpoint_timestamp_seconds",
    ("table",),
)
FREE_BYTES = Metric(
    "slackwater_state_free_bytes",
    "Free bytes on the disk of the state.",
    "slackwater_state_free_bytes / slackwater_state_disk_bytes < 0.1",
)
DISK_BYTES = Metric(
    "slackwater_state_disk_bytes",
    "The size of the disk of the state.",
    "predict_linear(slackwater_state_free_bytes[6h], 86400) < 0",
)
PURGE_EPOCH = Metric(
    "slackwater_purge_epoch",
    "Hub epochs up to here are purged; 0: nothing is.",
    "slackwater_purge_horizon_epoch - slackwater_purge_epoch",
)
PURGE_HORIZON = Metric(
    "slackwater_purge_horizon_epoch",
    "The hub epoch up to which every live consumer has everything: the purge can go so far.",
    "slackwater_hub_epoch - slackwater_purge_horizon_epoch",
)
PURGE_HELD = Metric(
    "slackwater_purge_held_seconds",
    "For how long somebody has needed what could be purged by its age; by `age`: nobody does.",
    "slackwater_purge_held_seconds > 86400",
    ("by", "name"),
)
CERTIFICATE_EXPIRY = Metric(
    "slackwater_certificate_expiry_timestamp_seconds",
    "When the first certificate of a file expires that an option of [kafka.options] names.",
    "slackwater_certificate_expiry_timestamp_seconds - time() < 14 * 86400",
    ("option",),
)

HUB = {
    "Versions": (BUILD_INFO, WIRE_VERSION, FORMAT_VERSION, CONFIG_VERSION),
    "The hub": (
        *(HUB_EPOCH, GENERATION, BATCHES, SLOW_BATCHES, BATCH_SECONDS, PHASE_SECONDS),
        *(UNDER_WAY, LAST_COMMIT, LAST_POLL, READY, HUBS_SEEN, WINDOW_ROWS, ROWS_LAG),
    ),
    "Input": (
        *(RECORDS_READ, UNREAD, CHANGES, DUPLICATES, LATE, QUARANTINED, QUARANTINE),
        *(KEPT_RECORDS, KEPT_BYTES, KEPT_RATIO),
        *(PENDING, PENDING_OLDEST, KAFKA_BEHIND, PACKET_PROBLEMS, UNKNOWN_TOPICS),
    ),
    "Conflicts": (
        *(CONFLICTS, REFRESHES, REFUSED_ROWS, LACKING_COLUMNS, DIFFERING_ROWS),
        *(LOCAL_WRITES, HANDLING),
    ),
    "Agreements": AGREEMENTS,
    "Replicas": (
        *(REPLICA_STATE, REPLICA_PAUSED, REPLICA_UNREADABLE, LAST_SEEN, RECOVERY_POINT),
        *(REPLICA_EPOCH, MRE, MRE_AGE, RUV_AGE, CLOCK_AHEAD),
    ),
    "Storage": (
        *(TABLE_VERSION, TABLE_FILES, TABLE_BYTES, CHECKPOINT_TIME, FREE_BYTES, DISK_BYTES),
        *(PURGE_EPOCH, PURGE_HORIZON, PURGE_HELD, CERTIFICATE_EXPIRY),
    ),
}
"""What a hub exposes on its HTTP port: subject -> its metrics."""
HUB_METRICS = tuple(chain.from_iterable(HUB.values()))
"""All of them."""
