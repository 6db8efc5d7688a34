"""Conflicts: how many, of which kind, in which table, who loses, and what became of them."""

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

_RATE = "(rate(slackwater_conflicts_total[$__rate_interval]))"

BOARD = Board(
    Uid.CONFLICTS,
    "Slackwater: conflicts",
    "How many changes conflict, of which kind, in which table, who loses, and what follows.",
    (
        Row(
            "Now",
            (
                stat(
                    "In an hour",
                    "Conflicts that were recorded in the last hour.",
                    "sum(increase(slackwater_conflicts_total[1h]))",
                ),
                stat(
                    "Share",
                    "The share of judged changes that were rejected in the last hour.",
                    'sum(increase(slackwater_changes_total{verdict="rejected"}[1h]))'
                    " / sum(increase(slackwater_changes_total[1h]))",
                    unit=Unit.RATIO,
                ),
                stat(
                    "Since ever",
                    "Conflicts since the state was made.",
                    "sum(slackwater_conflicts_total)",
                ),
                stat(
                    "In handling",
                    "Replicas that have not applied the refreshes of their last conflict.",
                    "sum(slackwater_conflict_handling)",
                ),
                stat(
                    "Refused rows",
                    "Rows that databases refused and have not taken since.",
                    "sum(slackwater_refused_rows)",
                    look=Look.ALARM,
                ),
                stat(
                    "Lacking columns",
                    "Columns that databases lack and are sent: rows wait until they are added.",
                    "sum(slackwater_lacking_columns)",
                    look=Look.ALARM,
                ),
                stat(
                    "Differing rows",
                    "Rows that a replica may hold otherwise than the hub; at most 1,000.",
                    "sum(slackwater_differing_rows)",
                    look=Look.ALARM,
                ),
            ),
        ),
        Row(
            "Rates",
            (
                graph(
                    "By kind",
                    "What met what: docs/protocol.md, Judging, explains each kind.",
                    (f"sum by (kind) {_RATE}", "{{kind}}"),
                    unit=Unit.PER_SECOND,
                    kind=PanelKind.STACK,
                ),
                graph(
                    "By table",
                    "The table, and the function that decides for it.",
                    (f"sum by (table, function) {_RATE}", "{{table}}, {{function}}"),
                    unit=Unit.PER_SECOND,
                    kind=PanelKind.STACK,
                ),
                graph(
                    "By loser",
                    "The replica whose change lost.",
                    (f"sum by (replica) {_RATE}", "{{replica}}"),
                    unit=Unit.PER_SECOND,
                    kind=PanelKind.STACK,
                    to=Uid.REPLICA,
                ),
                graph(
                    "Refreshes",
                    "Rows that are sent to a replica to correct it.",
                    (
                        "sum by (replica) (rate(slackwater_refreshes_total[$__rate_interval]))",
                        "{{replica}}",
                    ),
                    unit=Unit.PER_SECOND,
                    kind=PanelKind.STACK,
                    to=Uid.REPLICA,
                ),
                graph(
                    "Differing rows",
                    "Rows that a replica may hold otherwise than the hub, by cause.",
                    (
                        "sum by (replica, cause) (slackwater_differing_rows)",
                        "{{replica}}: {{cause}}",
                    ),
                    to=Uid.REPLICA,
                ),
                graph(
                    "Local writes",
                    "Rows that were written at one replica only, until they are found equal.",
                    (
                        "sum by (replica, table) (slackwater_local_writes)",
                        "{{replica}}: {{table}}",
                    ),
                    to=Uid.REPLICA,
                ),
                Panel(
                    "Most in a day",
                    "The ten pairs of table and loser with the most conflicts in a day.",
                    (
                        Query(
                            "topk(10, sum by (table, replica)"
                            " (increase(slackwater_conflicts_total[1d])))"
                        ),
                    ),
                    PanelKind.TABLE,
                ),
            ),
        ),
    ),
)
