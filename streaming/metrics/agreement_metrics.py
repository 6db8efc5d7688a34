"""The metrics of agreements: what each consumer is sent, and how far behind it is."""

from streaming.metrics.metric import Metric

_OF = ("agreement", "consumer")

AGREEMENT_STATE = Metric(
    "slackwater_agreement_state",
    "1 for the state that the agreement is in, 0 for all others.",
    'slackwater_agreement_state{state=~"refused|hub_behind|input_lost"} == 1',
    (*_OF, "state"),
)
AGREEMENT_LEVEL = Metric(
    "slackwater_agreement_level",
    "1: the consumer has everything that was written anywhere, as `slackwater level` answers.",
    "min(slackwater_agreement_level) == 0",
    _OF,
)
LAG_SECONDS = Metric(
    "slackwater_agreement_lag_seconds",
    "Since the first hub epoch that the consumer has not acknowledged was committed, or, of a"
    " delayed one, due; 0: none.",
    "max(slackwater_agreement_lag_seconds) > 60",
    _OF,
)
LAG_EPOCHS = Metric(
    "slackwater_agreement_lag_epochs",
    "Hub epochs that the consumer has not acknowledged.",
    "slackwater_agreement_lag_epochs",
    _OF,
)
LAG_CHANGES = Metric(
    "slackwater_agreement_lag_changes",
    "Changes of others, of the agreement's tables, beyond the position that was sent, or acked.",
    'deriv(slackwater_agreement_lag_changes{position="acked"}[15m]) > 0',
    (*_OF, "position"),
)
TIME_TO_LEVEL = Metric(
    "slackwater_agreement_time_to_level_seconds",
    "In how long the consumer will have everything: its backlog in changes by the rate at which it"
    " shrank in the last minute; 0: it has; +Inf: at this rate never.",
    "slackwater_agreement_time_to_level_seconds > 3600",
    _OF,
)
ACKED = Metric(
    "slackwater_agreement_acked_timestamp_seconds",
    "When the consumer last acknowledged something.",
    "time() - slackwater_agreement_acked_timestamp_seconds",
    _OF,
)
ORIGIN_LAG_SECONDS = Metric(
    "slackwater_origin_lag_seconds",
    "The lag matrix: since the first change of this origin that the consumer has not acknowledged.",
    "max by (consumer, origin) (slackwater_origin_lag_seconds)",
    (*_OF, "origin"),
)
ORIGIN_LAG_CHANGES = Metric(
    "slackwater_origin_lag_changes",
    "The matrix: changes of this origin beyond what the consumer was sent, the hub's estimate, or"
    " what it acked, its own word.",
    'sum by (origin) (slackwater_origin_lag_changes{position="acked"})',
    (*_OF, "origin", "position"),
)
ORIGIN_COMPLETE_TO = Metric(
    "slackwater_origin_complete_to_timestamp_seconds",
    "Everything that this origin wrote up to then is at the consumer: what would be missing if the"
    " origin were lost now is later. Absent while it is not known.",
    "time() - min by (consumer, origin) (slackwater_origin_complete_to_timestamp_seconds)",
    (*_OF, "origin"),
)
ORIGIN_DELAY_WORST = Metric(
    "slackwater_origin_delay_worst_seconds",
    "The longest today (UTC) that the time up to which the consumer has everything of this origin"
    " was past; table `delays` has each day's.",
    "max by (consumer, origin) (slackwater_origin_delay_worst_seconds)",
    (*_OF, "origin"),
)
RESYNC_ROWS = Metric(
    "slackwater_resync_rows",
    "Rows of the resync under way: in total, and sent by committed pages; 0: none is under way.",
    'slackwater_resync_rows{state="total"} - ignoring (state) slackwater_resync_rows{state="sent"}',
    (*_OF, "state"),
)
RESYNC_TABLES = Metric(
    "slackwater_resync_tables_left",
    "Tables that the resync under way has not finished.",
    "slackwater_resync_tables_left > 0",
    _OF,
)
RESYNC_RATIO = Metric(
    "slackwater_resync_progress_ratio",
    "The share of its rows that the resync under way has sent; 1: none is under way.",
    "slackwater_resync_progress_ratio < 1",
    _OF,
)

DELAYED_EPOCHS = Metric(
    "slackwater_agreement_delayed_epochs",
    "Hub epochs that are committed and not sent by the agreement's delay, its hours, which are no"
    " lag, or its rate, which are.",
    "sum by (agreement) (slackwater_agreement_delayed_epochs)",
    (*_OF, "reason"),
)

PAUSED_TABLES = Metric(
    "slackwater_agreement_paused_tables",
    "Tables of the agreement of which an operator has its consumer sent nothing.",
    "slackwater_agreement_paused_tables > 0",
    _OF,
)

HOLD_LEFT = Metric(
    "slackwater_agreement_hold_left_seconds",
    "In how long what a consumer lacks that is away is kept no longer, so that it gets a full copy;"
    " 0: so it is; +Inf: it is heard.",
    "slackwater_agreement_hold_left_seconds < 86400",
    _OF,
)

COMPARED_ROWS = Metric(
    "slackwater_compared_rows",
    "Rows that the last full round of `slackwater compare --continuous` compared with the hub's.",
    "sum(slackwater_compared_rows)",
    _OF,
)
COMPARED_DIFFERING = Metric(
    "slackwater_compared_differing_rows",
    "Rows of the consumer that this round found to differ from the hub's; 0 while they may be in"
    " flight, because the hub or the consumer was further behind than was waited for.",
    "slackwater_compared_differing_rows > 0",
    _OF,
)
COMPARED_AT = Metric(
    "slackwater_compared_timestamp_seconds",
    "When this round ended; absent before the first one.",
    "time() - slackwater_compared_timestamp_seconds > 86400",
    _OF,
)

AGREEMENTS = (
    *(AGREEMENT_STATE, AGREEMENT_LEVEL, LAG_SECONDS, LAG_EPOCHS, LAG_CHANGES),
    *(TIME_TO_LEVEL, ACKED, ORIGIN_LAG_SECONDS, ORIGIN_LAG_CHANGES),
    *(ORIGIN_COMPLETE_TO, ORIGIN_DELAY_WORST, RESYNC_ROWS, RESYNC_TABLES, RESYNC_RATIO),
    *(DELAYED_EPOCHS, PAUSED_TABLES, HOLD_LEFT),
    *(COMPARED_ROWS, COMPARED_DIFFERING, COMPARED_AT),
)
"""All of them."""
