"""Agents: how far each has published and applied, by what the agents say of themselves."""

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

_BY = "{{replica}}"
_COVERS = "max by (replica) (slackwater_agent_covers_epoch)"


def _rate(counted: str) -> str:
    return f"sum by (replica) (rate({counted}[$__rate_interval]))"


BOARD = Board(
    Uid.AGENTS,
    "Slackwater: agents",
    "What each agent says of itself: only those that serve metrics are here (--metrics-port).",
    (
        Row(
            "Now",
            (
                stat(
                    "Agents",
                    "Those that Prometheus has scraped.",
                    "count(slackwater_agent_sessions_total)",
                ),
                stat(
                    "Largest backlog",
                    "Journal entries that are only in one database yet: lost with it.",
                    "max(slackwater_agent_journal_backlog)",
                ),
                stat(
                    "Longest wait",
                    "How long an agent waits for its database, which a long transaction blocks.",
                    "max(slackwater_agent_held_seconds)",
                    unit=Unit.SECONDS,
                    look=Look.LAG,
                ),
                stat(
                    "Refused in an hour",
                    "Items that a database refused; `slackwater conflicts` lists them.",
                    "sum(increase(slackwater_agent_refused_total[1h]))",
                    look=Look.ALARM,
                ),
            ),
        ),
        Row(
            "From the databases",
            (
                graph(
                    "Journal backlog",
                    "Journal entries that are not known to be in the changes topic.",
                    ("sum by (replica) (slackwater_agent_journal_backlog)", _BY),
                    to=Uid.REPLICA,
                ),
                graph(
                    "Published",
                    "Journal entries that each agent publishes.",
                    (_rate("slackwater_agent_published_total"), _BY),
                    unit=Unit.PER_SECOND,
                    to=Uid.REPLICA,
                ),
                Panel(
                    "Sessions",
                    "Sessions of each agent since it was started: one, or it lost its place.",
                    (Query("max by (replica) (slackwater_agent_sessions_total)"),),
                    PanelKind.TABLE,
                ),
            ),
        ),
        Row(
            "To the databases",
            (
                graph(
                    "Applied",
                    "Rows and ranges of the hub's batches that each agent applies.",
                    (_rate("slackwater_agent_items_total"), _BY),
                    unit=Unit.PER_SECOND,
                    to=Uid.REPLICA,
                ),
                graph(
                    "Batches applied",
                    "Batches of the hub that each agent applies.",
                    (_rate("slackwater_agent_batches_total"), _BY),
                    unit=Unit.PER_SECOND,
                    to=Uid.REPLICA,
                ),
                graph(
                    "Behind the hub",
                    "Hub epochs that each database does not have yet, by what its agent knows.",
                    (f"scalar(max(slackwater_hub_epoch)) - {_COVERS}", _BY),
                    to=Uid.REPLICA,
                ),
                graph(
                    "Held",
                    "How long each agent waits for its database: a long transaction blocks it.",
                    ("max by (replica) (slackwater_agent_held_seconds)", _BY),
                    unit=Unit.SECONDS,
                    to=Uid.REPLICA,
                ),
                graph(
                    "Refused",
                    "Items that each database has refused since its agent was started.",
                    ("sum by (replica) (slackwater_agent_refused_total)", _BY),
                    to=Uid.REPLICA,
                ),
            ),
        ),
        Row(
            "Only in the databases",
            (
                graph(
                    "Uncarried",
                    "Rows that no other replica can take; `slackwater conflicts` lists them.",
                    ("max by (replica) (slackwater_agent_uncarried_rows)", _BY),
                    to=Uid.REPLICA,
                ),
                graph(
                    "Saved",
                    "Rows that were overwritten and were nowhere else; `agent saved` shows them.",
                    ("max by (replica) (slackwater_agent_saved_rows)", _BY),
                    to=Uid.REPLICA,
                ),
                graph(
                    "Log kept",
                    "What the server of each database keeps of its log for the agent.",
                    ("max by (replica) (slackwater_agent_log_held_bytes)", _BY),
                    unit=Unit.BYTES,
                    to=Uid.REPLICA,
                ),
            ),
        ),
    ),
)
