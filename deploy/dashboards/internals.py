"""Hub: its batches and their phases, what it has not read, its tables and its process."""

from deploy.dashboards.board import (
    Board,
    Look,
    Panel,
    PanelKind,
    Query,
    Row,
    Uid,
    Unit,
    graph,
    stat,
)

_BUCKETS = "(rate(slackwater_batch_seconds_bucket[$__rate_interval]))"

_PHASES = "(rate(slackwater_batch_phase_seconds_sum[$__rate_interval]))"

BOARD = Board(
    Uid.HUB,
    "Slackwater: hub",
    "The hub's batches and their phases, what it has not read, its tables and its process.",
    (
        Row(
            "Now",
            (
                stat(
                    "Under way",
                    "How long the present batch is under way.",
                    "max(slackwater_batch_under_way_seconds)",
                    unit=Unit.SECONDS,
                    look=Look.LAG,
                ),
                stat(
                    "Last poll",
                    "Since the hub last reached Kafka; it polls every two seconds.",
                    "max(time() - slackwater_last_poll_timestamp_seconds)",
                    unit=Unit.SECONDS,
                    look=Look.LAG,
                ),
                stat(
                    "Last commit",
                    "Since the last batch was committed; at rest that is once a minute.",
                    "max(time() - slackwater_last_commit_timestamp_seconds)",
                    unit=Unit.SECONDS,
                ),
                stat(
                    "Hubs on this state",
                    "Hub processes that worked on it in the last minute; one is right.",
                    "max(slackwater_hubs_seen)",
                ),
                stat(
                    "Disk",
                    "The share of the state's disk that is free.",
                    "min(slackwater_state_free_bytes / slackwater_state_disk_bytes)",
                    unit=Unit.RATIO,
                ),
                stat(
                    "Purge horizon",
                    "Hub epochs above the one that every live consumer has.",
                    "max(slackwater_hub_epoch - slackwater_purge_horizon_epoch)",
                ),
                stat(
                    "Packets, topics",
                    "Packets, or folders of packets, that need a person, and topics of no replica;"
                    " `status` names them.",
                    "max(slackwater_packet_problems + slackwater_unknown_topics)",
                    look=Look.ALARM,
                ),
            ),
        ),
        Row(
            "Batches",
            (
                Panel(
                    "How long batches take",
                    "From the plan of a batch to the delivery of what it sends.",
                    (Query(f"sum by (le) {_BUCKETS}", "{{le}}"),),
                    PanelKind.HEATMAP,
                    Unit.SECONDS,
                ),
                graph(
                    "Phases",
                    "Seconds that each phase takes per second.",
                    (f"sum by (phase) {_PHASES}", "{{phase}}"),
                    unit=Unit.SECONDS,
                    kind=PanelKind.STACK,
                ),
                graph(
                    "Quantiles",
                    "How long half of the batches take at most, and 99 of 100.",
                    (f"histogram_quantile(0.5, sum by (le) {_BUCKETS})", "0.5"),
                    (f"histogram_quantile(0.99, sum by (le) {_BUCKETS})", "0.99"),
                    unit=Unit.SECONDS,
                ),
                graph(
                    "Rates",
                    "Committed batches, batches longer than hub.trigger_ms, and hub epochs.",
                    ("sum(rate(slackwater_batches_total[$__rate_interval]))", "batches"),
                    ("sum(rate(slackwater_slow_batches_total[$__rate_interval]))", "slow"),
                    ("sum(rate(slackwater_hub_epoch[$__rate_interval]))", "hub epochs"),
                    unit=Unit.PER_SECOND,
                ),
                graph(
                    "Kafka",
                    "Offsets that the hub is behind the ends of the topics.",
                    ("max by (statistic) (slackwater_kafka_offsets_behind)", "{{statistic}}"),
                ),
                graph(
                    "Memory for judging",
                    "Rows in the window, and hub epochs that table rows is behind.",
                    ("max(slackwater_window_rows)", "rows in the window"),
                    ("max(slackwater_rows_lag_epochs)", "epochs behind"),
                ),
            ),
        ),
        Row(
            "Storage",
            (
                graph(
                    "Bytes",
                    "Bytes of the data files of each table.",
                    ("max by (table) (slackwater_delta_table_bytes)", "{{table}}"),
                    unit=Unit.BYTES,
                    kind=PanelKind.STACK,
                ),
                graph(
                    "Files",
                    "Data files of each table.",
                    ("max by (table) (slackwater_delta_table_files)", "{{table}}"),
                ),
                graph(
                    "Versions",
                    "Commits to each table.",
                    (
                        "sum by (table) (rate(slackwater_delta_table_version[$__rate_interval]))",
                        "{{table}}",
                    ),
                    unit=Unit.PER_SECOND,
                ),
                graph(
                    "Checkpoints of the logs",
                    "Since the newest checkpoint of each table's log was written.",
                    (
                        "max by (table) (time() - slackwater_delta_checkpoint_timestamp_seconds)",
                        "{{table}}",
                    ),
                    unit=Unit.SECONDS,
                ),
                graph(
                    "Purge",
                    "The hub epoch, the one up to which a purge can go, and that it went to.",
                    ("max(slackwater_hub_epoch)", "hub epoch"),
                    ("max(slackwater_purge_horizon_epoch)", "can be purged"),
                    ("max(slackwater_purge_epoch)", "purged"),
                ),
                graph(
                    "Who holds the purge",
                    "For how long somebody has needed what could be purged by its age.",
                    ("max by (by, name) (slackwater_purge_held_seconds)", "{{by}} {{name}}"),
                    unit=Unit.SECONDS,
                ),
                Panel(
                    "Versions of the software",
                    "What each hub runs on.",
                    (Query("count by (version, python, spark, delta) (slackwater_build_info)"),),
                    PanelKind.TABLE,
                ),
                graph(
                    "Formats",
                    "The newest wire format that it understands, the format of its state, and the"
                    " number of its configuration.",
                    ("max(slackwater_wire_version)", "wire"),
                    ("max(slackwater_state_format_version)", "state"),
                    ("max(slackwater_config_version)", "configuration"),
                ),
            ),
        ),
        Row(
            "Process",
            (
                graph(
                    "CPU",
                    "Cores that the hub's Python process uses; its JVM is another process.",
                    ("sum(rate(process_cpu_seconds_total[$__rate_interval]))", "Python"),
                ),
                graph(
                    "Memory",
                    "Resident memory of the hub's Python process; its JVM is another process.",
                    ("max(process_resident_memory_bytes)", "Python"),
                    unit=Unit.BYTES,
                ),
                graph(
                    "Files",
                    "Open file descriptors of the hub's Python process.",
                    ("max(process_open_fds)", "open"),
                ),
            ),
        ),
    ),
)
