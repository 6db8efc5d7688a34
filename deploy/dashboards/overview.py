"""Overview: is everybody level, how far does each lag, what comes in, what conflicts."""

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

_UNSEEN = "max by (replica) (time() - slackwater_replica_last_seen_timestamp_seconds)"

BOARD = Board(
    Uid.OVERVIEW,
    "Slackwater: overview",
    "Whether every replica is level, how far each lags, what comes in and what conflicts.",
    (
        Row(
            "Now",
            (
                stat(
                    "Level",
                    "Whether every consumer has acknowledged everything that the hub has.",
                    "min(slackwater_agreement_level)",
                    look=Look.LEVEL,
                ),
                stat(
                    "Ready",
                    "Whether the hub reads its topics and reaches Kafka.",
                    "min(slackwater_ready)",
                    look=Look.LEVEL,
                    to=Uid.HUB,
                ),
                stat(
                    "Longest lag",
                    "Since the first hub epoch was committed that a consumer has not acknowledged.",
                    "max(slackwater_agreement_lag_seconds)",
                    unit=Unit.SECONDS,
                    look=Look.LAG,
                ),
                stat(
                    "Recovery point",
                    "What is lost at most if a replica dies now: what it wrote in so many seconds.",
                    "max(slackwater_replica_recovery_point_seconds)",
                    unit=Unit.SECONDS,
                    look=Look.LAG,
                ),
                stat(
                    "Conflicts in an hour",
                    "Conflicts that were recorded in the last hour.",
                    "sum(increase(slackwater_conflicts_total[1h]))",
                    to=Uid.CONFLICTS,
                ),
                stat(
                    "In quarantine",
                    "Records that nobody has released or dropped.",
                    "sum(slackwater_quarantine_records)",
                    look=Look.ALARM,
                ),
            ),
        ),
        Row(
            "Lag",
            (
                Panel(
                    "Lag matrix",
                    "For each consumer, since the first change of each origin that it has not"
                    " acknowledged.",
                    (Query("max by (consumer, origin) (slackwater_origin_lag_seconds)"),),
                    PanelKind.MATRIX,
                    Unit.SECONDS,
                    Look.LAG,
                    width=12,
                    matrix=("consumer", "origin"),
                ),
                Panel(
                    "Agreements",
                    "The state that each agreement is in.",
                    (
                        Query(
                            "max by (agreement, consumer, state) (slackwater_agreement_state == 1)"
                        ),
                    ),
                    PanelKind.TABLE,
                    width=12,
                    to=Uid.AGREEMENT,
                ),
                graph(
                    "Lag",
                    "How long each consumer has not had everything.",
                    ("max by (agreement) (slackwater_agreement_lag_seconds)", "{{agreement}}"),
                    unit=Unit.SECONDS,
                    to=Uid.AGREEMENT,
                ),
                graph(
                    "Changes not acknowledged",
                    "Changes of others that each consumer has not acknowledged.",
                    (
                        'max by (agreement) (slackwater_agreement_lag_changes{position="acked"})',
                        "{{agreement}}",
                    ),
                    to=Uid.AGREEMENT,
                ),
                graph(
                    "Replicas",
                    "Since the newest record of each replica that the hub has read; an agent sends"
                    " one every ten seconds.",
                    (_UNSEEN, "{{replica}}"),
                    unit=Unit.SECONDS,
                    to=Uid.REPLICA,
                ),
            ),
        ),
        Row(
            "Throughput",
            (
                graph(
                    "Changes",
                    "Changes of each replica that were judged.",
                    (
                        "sum by (replica) (rate(slackwater_changes_total[$__rate_interval]))",
                        "{{replica}}",
                    ),
                    unit=Unit.PER_SECOND,
                    kind=PanelKind.STACK,
                    to=Uid.REPLICA,
                ),
                graph(
                    "Conflicts",
                    "Conflicts by kind.",
                    (
                        "sum by (kind) (rate(slackwater_conflicts_total[$__rate_interval]))",
                        "{{kind}}",
                    ),
                    unit=Unit.PER_SECOND,
                    kind=PanelKind.STACK,
                    to=Uid.CONFLICTS,
                ),
                graph(
                    "Waiting",
                    "Records that no batch has read, and changes that are not eligible yet.",
                    ("sum(slackwater_unread_records)", "unread"),
                    ("sum by (state) (slackwater_pending_changes)", "{{state}}"),
                ),
            ),
        ),
    ),
)
