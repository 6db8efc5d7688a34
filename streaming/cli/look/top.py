"""`top`: the status on the whole screen, again and again until Ctrl-C."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, ConfigPath, now, opened
from streaming.core.text.wording import as_age
from streaming.facts.health import agreement_state, problems, replica_state
from streaming.facts.status.agreements import AgreementSummary
from streaming.facts.status.hub import HubStatus, hub_status
from streaming.facts.status.replicas import ReplicaSummary

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

Every = Annotated[
    float, typer.Option("--every", min=0.2, help="Seconds from one look at the hub to the next.")
]

WARN_S, BAD_S = 10, 60
"""From which lag on a consumer is shown in yellow, and in red."""
PROBLEMS_MAX = 3
_JUDGED = ("accepted", "rejected", "quarantined")


@cannot_say()
def top(*, config: ConfigPath = DEFAULT_CONFIG, every: Every = 2.0) -> None:
    """Show the state of the hub on the whole screen until Ctrl-C; into a pipe only once."""
    from rich.console import Console  # noqa: PLC0415 its import takes time
    from rich.live import Live  # noqa: PLC0415 as above

    console = Console(highlight=False, markup=False)
    looks = _looks(config)
    if not sys.stdout.isatty():
        console.print(next(looks))
        return
    with Live(next(looks), console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(every)
                live.update(next(looks), refresh=True)
        except KeyboardInterrupt:
            return


def _looks(config: Path) -> Iterator["Group"]:
    """The screen as it is at each look."""
    before: HubStatus | None = None
    while True:
        configured, reader = opened(config)
        found = hub_status(configured, reader, now().timestamp())
        yield screen(found, judged_rates(before, found))
        before = found


def judged_rates(before: HubStatus | None, found: HubStatus) -> dict[str, float] | None:
    """Changes a second by verdict, between two looks; None: there was one only.

    They are by the times of the looks' last commits.
    """
    if before is None or before.age_s is None or found.age_s is None:
        return None
    if before.committed_at is None or found.committed_at is None:
        return None
    passed_s = (found.committed_at - before.committed_at).total_seconds()
    if passed_s <= 0:
        return dict.fromkeys(_JUDGED, 0.0)
    return {
        one: (found.totals.get(one, 0) - before.totals.get(one, 0)) / passed_s for one in _JUDGED
    }


def screen(found: HubStatus, rates: dict[str, float] | None) -> "Group":
    """Everything that is shown of a status: what needs a person first."""
    from rich.console import Group  # noqa: PLC0415 as above
    from rich.text import Text  # noqa: PLC0415 as above

    needs = problems(found)
    lines = [Text(f"problem: {one.what}; {one.remedy}", "bold red") for one in needs]
    more = len(needs) - PROBLEMS_MAX
    if more > 0:
        lines[PROBLEMS_MAX:] = [Text(f"and {more} more: slackwater status", "bold red")]
    return Group(
        Text(_head(found), "bold"),
        Text(_rates(rates, found)),
        *(lines or [Text("in order: nothing needs a person", "green")]),
        Text(),
        _agreements(found),
        Text(),
        _replicas(found),
        Text(),
        Text(f"conflicts {found.conflicts.total}, in quarantine {found.quarantine.kept}"),
    )


def _head(found: HubStatus) -> str:
    committed = "nothing committed" if found.age_s is None else f"committed {as_age(found.age_s)}"
    return f"{found.hub}: hub epoch {found.hub_epoch}, batch {found.batch}, {committed}"


def _rates(rates: dict[str, float] | None, found: HubStatus) -> str:
    unread = f"unread {sum(found.unread.values())}"
    waiting = f"open {found.pending.pending + found.pending.waiting}"
    if rates is None:
        return f"{unread}, {waiting}"
    judged = (f"{rate:.1f}/s {verdict}" for verdict, rate in rates.items())
    return ", ".join([*judged, unread, waiting])


def _agreements(found: HubStatus) -> "Table":
    table = _table("consumer", "state", "lag", "changes", "epochs", "level")
    for one in found.agreements:
        lag = "-" if one.lag_s is None else f"{one.lag_s:.1f} s"
        changes = "-" if one.lag_changes is None else str(one.lag_changes)
        level = "yes" if one.level else "no"
        state = agreement_state(one, found)
        table.add_row(
            one.consumer, state, lag, changes, str(one.lag_epochs), level, style=_style(one)
        )
    return table


def _style(one: AgreementSummary) -> str:
    lag_s = one.lag_s or 0.0
    if one.remedy is not None or lag_s >= BAD_S:
        return "red"
    return "green" if one.level else "yellow" if lag_s >= WARN_S else ""


def _replicas(found: HubStatus) -> "Table":
    table = _table("replica", "state", "last seen", "accepted", "rejected", "open", "quarantined")
    for one in found.replicas:
        table.add_row(*_replica(one, found), style="red" if one.remedy is not None else "")
    return table


def _replica(one: ReplicaSummary, found: HubStatus) -> Iterator[str]:
    yield one.name or str(one.rid)
    yield replica_state(one, found)
    yield "never" if one.seen_age_s is None else as_age(one.seen_age_s)
    yield str(one.changes.get("accepted", 0))
    yield str(one.changes.get("rejected", 0))
    yield str(one.pending + one.waiting)
    yield str(sum(one.quarantined.values()))


def _table(*columns: str) -> "Table":
    from rich import box  # noqa: PLC0415 as above
    from rich.table import Table  # noqa: PLC0415 as above

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
