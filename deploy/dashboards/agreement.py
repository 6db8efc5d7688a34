"""Agreement: what one consumer is sent, how far it lags, of which origin, and its resync."""

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

_COMPLETE_TO = "slackwater_origin_complete_to_timestamp_seconds"

_OF = '{agreement="$agreement"}'
_ACKED, _SENT = (f'{{agreement="$agreement", position="{one}"}}' for one in ("acked", "sent"))

BOARD = Board(
    Uid.AGREEMENT,
    "Slackwater: agreement",
    "What one consumer is sent, how far it lags, of which origin, and how far its resync is.",
    (
        Row(
            "Now",
            (
                stat(
                    "Level",
                    "Whether the consumer has acknowledged everything that the hub has.",
                    f"min(slackwater_agreement_level{_OF})",
                    look=Look.LEVEL,
                ),
                stat(
                    "Lag",
                    "Since the first hub epoch was committed that it has not acknowledged.",
                    f"max(slackwater_agreement_lag_seconds{_OF})",
                    unit=Unit.SECONDS,
                    look=Look.LAG,
                ),
                stat(
                    "Hub epochs behind",
                    "Hub epochs that it has not acknowledged.",
                    f"max(slackwater_agreement_lag_epochs{_OF})",
                ),
                stat(
                    "Level in",
                    "In how long it has everything at the rate of the last minute; Inf: never.",
                    f"max(slackwater_agreement_time_to_level_seconds{_OF})",
                    unit=Unit.SECONDS,
                    look=Look.LAG,
                ),
                stat(
                    "Last acknowledged",
                    "Since it last acknowledged something.",
                    f"max(time() - slackwater_agreement_acked_timestamp_seconds{_OF})",
                    unit=Unit.SECONDS,
                ),
                stat(
                    "Delayed",
                    "Hub epochs that wait by its delay, its hours or its rate.",
                    f"sum(slackwater_agreement_delayed_epochs{_OF})",
                ),
                stat(
                    "Paused tables",
                    "Tables of which an operator has it sent nothing.",
                    f"max(slackwater_agreement_paused_tables{_OF})",
                ),
                stat(
                    "Kept for",
                    "For how long what it lacks is kept for it while it is away; Inf: it is heard.",
                    f"min(slackwater_agreement_hold_left_seconds{_OF})",
                    unit=Unit.SECONDS,
                ),
                stat(
                    "Resync",
                    "The share of its rows that the resync under way has sent; 100%: none is.",
                    f"min(slackwater_resync_progress_ratio{_OF})",
                    unit=Unit.RATIO,
                ),
            ),
        ),
        Row(
            "Lag",
            (
                Panel(
                    "State",
                    "The state that the agreement is in; docs/runbook.md says what to do.",
                    (
                        Query(
                            "max by (consumer, state)"
                            ' (slackwater_agreement_state{agreement="$agreement"} == 1)'
                        ),
                    ),
                    PanelKind.TABLE,
                    to=Uid.REPLICA,
                    by="consumer",
                ),
                graph(
                    "Lag",
                    "Since the first hub epoch was committed that it has not acknowledged.",
                    (f"max(slackwater_agreement_lag_seconds{_OF})", "lag"),
                    unit=Unit.SECONDS,
                ),
                graph(
                    "Changes behind",
                    "Changes of others that it was not sent, and that it has not acknowledged.",
                    (
                        f"max by (position) (slackwater_agreement_lag_changes{_OF})",
                        "not {{position}}",
                    ),
                ),
                graph(
                    "Lag by origin",
                    "Since the first change of each origin that it has not acknowledged.",
                    (f"max by (origin) (slackwater_origin_lag_seconds{_OF})", "{{origin}}"),
                    unit=Unit.SECONDS,
                    to=Uid.REPLICA,
                    by="origin",
                ),
                graph(
                    "Delay by origin",
                    "How long ago the time is up to which it has everything that each origin wrote:"
                    " what would be missing if the origin were lost now. And the longest today.",
                    (f"time() - min by (origin) ({_COMPLETE_TO}{_OF})", "{{origin}}"),
                    (
                        f"max by (origin) (slackwater_origin_delay_worst_seconds{_OF})",
                        "{{origin}}, worst today",
                    ),
                    unit=Unit.SECONDS,
                ),
                graph(
                    "Changes by origin",
                    "Changes of each origin that it has not acknowledged, by its own word.",
                    (f"max by (origin) (slackwater_origin_lag_changes{_ACKED})", "{{origin}}"),
                    kind=PanelKind.STACK,
                ),
                graph(
                    "Changes not sent by origin",
                    "Changes of each origin that it was not sent, by the hub's estimate.",
                    (f"max by (origin) (slackwater_origin_lag_changes{_SENT})", "{{origin}}"),
                    kind=PanelKind.STACK,
                ),
            ),
        ),
        Row(
            "Resync",
            (
                graph(
                    "Rows",
                    "Rows of the resync under way, and those that are sent; 0: none is under way.",
                    (f"max by (state) (slackwater_resync_rows{_OF})", "{{state}}"),
                ),
                graph(
                    "Tables left",
                    "Tables that the resync under way has not finished.",
                    (f"max(slackwater_resync_tables_left{_OF})", "tables"),
                ),
            ),
        ),
        Row(
            "Comparison",
            (
                graph(
                    "Rows that differ",
                    "Rows that the last full round of a comparison found to differ from the hub's.",
                    (f"max(slackwater_compared_differing_rows{_OF})", "differ"),
                ),
                graph(
                    "Rows compared",
                    "Rows that this round compared.",
                    (f"max(slackwater_compared_rows{_OF})", "rows"),
                ),
                stat(
                    "Last full round",
                    "Since the last full round of a comparison ended.",
                    f"time() - max(slackwater_compared_timestamp_seconds{_OF})",
                    unit=Unit.SECONDS,
                ),
            ),
        ),
    ),
    variable="agreement",
    of="slackwater_agreement_level",
)
