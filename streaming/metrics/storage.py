"""What a hub exposes of its tables, its disk and its certificates."""

from streaming.metrics.metric import gauge, seconds

TABLE_VERSION = gauge(
    "slackwater_delta_table_version",
    "The version of a table of the state.",
    "rate(slackwater_delta_table_version[1h])",
    "table",
)


TABLE_FILES = gauge(
    "slackwater_delta_table_files",
    "Data files of a table's newest version.",
    "slackwater_delta_table_files > 1000",
    "table",
)


TABLE_BYTES = gauge(
    "slackwater_delta_table_bytes",
    "Bytes of the data files of a table's newest version.",
    "sum(slackwater_delta_table_bytes)",
    "table",
    unit="bytes",
)


CHECKPOINT_TIME = seconds(
    "slackwater_delta_checkpoint_timestamp_seconds",
    "When the newest checkpoint of a table's log was written; tables without one are left out.",
    "time() - slackwater_delta_checkpoint_timestamp_seconds",
    "table",
)


FREE_BYTES = gauge(
    "slackwater_state_free_bytes",
    "Free bytes on the disk of the state.",
    "slackwater_state_free_bytes / slackwater_state_disk_bytes < 0.1",
    unit="bytes",
)


DISK_BYTES = gauge(
    "slackwater_state_disk_bytes",
    "The size of the disk of the state.",
    "predict_linear(slackwater_state_free_bytes[6h], 86400) < 0",
    unit="bytes",
)


PURGE_EPOCH = gauge(
    "slackwater_purge_epoch",
    "Hub epochs up to here are purged; 0: nothing is.",
    "slackwater_purge_horizon_epoch - slackwater_purge_epoch",
)


PURGE_HORIZON = gauge(
    "slackwater_purge_horizon_epoch",
    "The hub epoch up to which every live consumer has everything: the purge can go so far.",
    "slackwater_hub_epoch - slackwater_purge_horizon_epoch",
)


CERTIFICATE_EXPIRY = seconds(
    "slackwater_certificate_expiry_timestamp_seconds",
    "When the first certificate of a file expires that an option of [kafka.options] names.",
    "slackwater_certificate_expiry_timestamp_seconds - time() < 14 * 86400",
    "option",
)
