"""From when on a field of the configuration holds that is changed where a hub has run."""

from collections.abc import Mapping
from enum import StrEnum


class HoldsFrom(StrEnum):
    """From when on a changed field holds."""

    HUB_EPOCH = "next hub epoch"
    """from the next hub epoch on, by `slackwater config apply`, or when the hub is started again"""
    RESTART = "restart"
    """when the hub is started again with it"""
    FILE = "file"
    """within two seconds after its file is changed: hub and agents read it again by themselves"""
    AGENT = "agent"
    """when each agent is started again with it; the hub decides nothing by it"""
    COMMAND = "command"
    """with the next command that shows it; the hub decides nothing by it"""
    NEVER = "never"
    """never: a hub refuses it, for its state is written by it"""


_HUB_EPOCH = {
    "hub": (
        *("trigger_ms", "covers_interval_ms", "ack_timeout_s", "heartbeat_timeout_s"),
        "replay_window_h",
    ),
    "replicas[]": ("name", "writes"),
    "tables[]": ("name", "columns", "function", "dataset", "on_refused", "on_hidden"),
    "agreements[]": (
        *("name", "consumer", "tables", "rows", "columns", "masks", "send"),
        *("packets", "packet_every_s", "delay_s", "hours", "bytes_per_s"),
        "priority",
    ),
    "functions": ("modules",),
    "limits": (
        *("offsets_per_batch", "batch_ms", "flood_ms", "driver_batch_records", "min_partitions"),
        *("chunk_items", "chunk_bytes", "page_items", "resync_page_rows", "resync_pages"),
        *("resync_workers", "record_bytes", "quarantine_bytes", "quarantine_records", "skew_s"),
        *("pending_changes", "open_transactions", "window_rows", "kept_image_bytes"),
        *("materialize_every_epochs", "materialize_every_s", "refused_again_ms", "reflections"),
    ),
    "retention": ("keep_h", "max_away_h", "conflicts_h"),
}
"""Section -> its fields that a running hub takes over; `[]`: of each entry."""
_RESTART = {
    "hub": ("name", "rid", "state", "topic_prefix", "batch_timeout_s"),
    "kafka": ("bootstrap_servers",),
    "agreements[]": ("compare",),
    "agreements[].compare": ("database", "every_s", "rows_per_s", "load"),
    "http": ("port", "host", "certificate", "key", "client_ca", "names"),
    "log": ("format", "level"),
    "traces": ("endpoint",),
    "lineage": ("url", "namespace", "access_token"),
    "masking": ("hash_secret",),
    "s3": ("endpoint", "region", "access_key_id", "secret_access_key"),
    "": ("spark",),
}
"""Section -> its fields that hold from the next start of the hub on."""
_OTHERS = {
    "kafka.options": HoldsFrom.FILE,
    "http.token": HoldsFrom.FILE,
    "limits.journal_rows": HoldsFrom.AGENT,
    "replicas[].oid": HoldsFrom.COMMAND,
    "replicas[].host": HoldsFrom.COMMAND,
    "replicas[].rid": HoldsFrom.NEVER,
    "tables[].key": HoldsFrom.NEVER,
}

HOLDS: Mapping[str, HoldsFrom] = {
    f"{section}.{name}".removeprefix("."): holds
    for holds, sections in ((HoldsFrom.HUB_EPOCH, _HUB_EPOCH), (HoldsFrom.RESTART, _RESTART))
    for section, names in sections.items()
    for name in names
} | _OTHERS
"""Path of a field, as `slackwater config schema` names it -> from when on it holds."""
