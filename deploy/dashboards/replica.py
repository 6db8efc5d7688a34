"""Replica: what one replica writes, what became of it, and how old its knowledge is."""

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

_OF = '{replica="$replica"}'

BOARD = Board(
    Uid.REPLICA,
    "Slackwater: replica",
    "What one replica writes, what became of it, and how old its knowledge of the others is.",
    (
        Row(
            "Now",
            (
                stat(
                    "Last seen",
                    "Since its newest record; an agent sends one every ten seconds.",
                    f"max(time() - slackwater_replica_last_seen_timestamp_seconds{_OF})",
                    unit=Unit.SECONDS,
                    look=Look.LAG,
                ),
                stat(
                    "Recovery point",
                    "What is lost at most if it dies now: what it wrote in so many seconds.",
                    f"max(slackwater_replica_recovery_point_seconds{_OF})",
                    unit=Unit.SECONDS,
                    look=Look.LAG,
                    to=Uid.AGENTS,
                ),
                stat(
                    "Unread records",
                    "Records of its topic that no batch has read.",
                    f"max(slackwater_unread_records{_OF})",
                ),
                stat(
                    "Oldest pending",
                    "The age of its oldest uncommitted change.",
                    f"max(slackwater_pending_oldest_seconds{_OF})",
                    unit=Unit.SECONDS,
                    look=Look.LAG,
                ),
                stat(
                    "Paused",
                    "1: it has too many open transactions, and its topic is not read.",
                    f"max(slackwater_replica_paused{_OF})",
                    look=Look.ALARM,
                ),
                stat(
                    "Unreadable",
                    "1: Kafka does not let the hub read its topic.",
                    f"max(slackwater_replica_unreadable{_OF})",
                    look=Look.ALARM,
                ),
                stat(
                    "Clock ahead",
                    "How far its largest CSN is ahead of the time of its last record.",
                    f"max(slackwater_replica_clock_ahead_seconds{_OF})",
                    unit=Unit.SECONDS,
                ),
            ),
        ),
        Row(
            "What it writes",
            (
                Panel(
                    "State",
                    "The state that the replica is in; docs/runbook.md says what to do.",
                    (Query(f"max by (state) (slackwater_replica_state{_OF} == 1)"),),
                    PanelKind.TABLE,
                ),
                graph(
                    "Records",
                    "Records of its topic that committed batches have read.",
                    (f"sum(rate(slackwater_records_read_total{_OF}[$__rate_interval]))", "records"),
                    unit=Unit.PER_SECOND,
                ),
                graph(
                    "Changes",
                    "Its changes that were judged, by verdict.",
                    (
                        f"sum by (verdict) (rate(slackwater_changes_total{_OF}[$__rate_interval]))",
                        "{{verdict}}",
                    ),
                    unit=Unit.PER_SECOND,
                    kind=PanelKind.STACK,
                    to=Uid.CONFLICTS,
                ),
                graph(
                    "Quarantined",
                    "Its records that were quarantined, by reason, since the state was made.",
                    (f"sum by (reason) (slackwater_quarantined_total{_OF})", "{{reason}}"),
                ),
                graph(
                    "In quarantine now",
                    "Its records that nobody has released or dropped.",
                    (f"max(slackwater_replica_quarantine_records{_OF})", "records"),
                ),
                graph(
                    "Budget of quarantine",
                    "How much of it is used; from 100 % on only the head of a record is kept.",
                    (f"max(slackwater_replica_quarantine_budget_ratio{_OF})", "used"),
                    unit=Unit.RATIO,
                ),
                graph(
                    "Bytes in quarantine",
                    "What the state keeps of its records.",
                    (f"max(slackwater_replica_quarantine_bytes{_OF})", "bytes"),
                    unit=Unit.BYTES,
                ),
                graph(
                    "Late and twice",
                    "Changes that came after a later one, and records that came again.",
                    (f"sum(slackwater_late_total{_OF})", "late"),
                    (f"sum(slackwater_duplicates_total{_OF})", "duplicates"),
                ),
                graph(
                    "Open changes",
                    "Uncommitted, and committed but not eligible yet.",
                    (f"sum by (state) (slackwater_pending_changes{_OF})", "{{state}}"),
                ),
            ),
        ),
        Row(
            "What it knows",
            (
                graph(
                    "Epochs that its writes have not seen",
                    "The hub's epoch less the replica's max replicated epoch.",
                    (
                        f"scalar(max(slackwater_hub_epoch)) - max(slackwater_replica_mre{_OF})",
                        "hub epochs",
                    ),
                ),
                graph(
                    "Age of its knowledge",
                    "Since the first hub epoch that its writes have not seen, and since its"
                    " largest CSN.",
                    (f"max(slackwater_replica_mre_age_seconds{_OF})", "MRE"),
                    (f"max(slackwater_replica_ruv_age_seconds{_OF})", "RUV"),
                    unit=Unit.SECONDS,
                ),
                graph(
                    "Batches applied",
                    "Its own epochs: the hub's batches that it has applied.",
                    (f"sum(rate(slackwater_replica_epoch{_OF}[$__rate_interval]))", "batches"),
                    unit=Unit.PER_SECOND,
                ),
            ),
        ),
    ),
    variable="replica",
    of="slackwater_replica_mre",
)
