"""`status`: the hub as of its last commit, with its replicas, agreements and conflicts."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import typer

from streaming.cli.exit_codes import ExitCode, cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, now, opened
from streaming.core.text.wording import as_age, as_bytes, as_count, as_duration
from streaming.facts.health import (
    Problem,
    agreement_state,
    problems,
    replica_state,
    status_document,
)
from streaming.facts.status.conflict_counters import ConflictCounters
from streaming.facts.status.hub import HubStatus, KeptHistory, hub_status
from streaming.facts.status.local_writes import local_warnings
from streaming.facts.status.replicas import PendingSummary, ReplicaSummary
from streaming.facts.status.schemas import schema_warnings, unreplicated_warnings
from streaming.terminal.output import (
    as_counts,
    write_json,
    write_line,
    write_pairs,
    write_sentence,
    write_table,
)

OfReplica = Annotated[
    str | None,
    typer.Option(
        "--replica", metavar="REPLICA", help="The hub epochs in flight to this replica and back."
    ),
]


@cannot_say()
def status(
    *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False, replica: OfReplica = None
) -> None:
    """Show the state of the hub, what needs a person first; exit 1 if something does.

    Behind it stand the states of replicas and agreements, the age of the last commit and of the
    oldest open transaction, and the conflicts of each replica by table. Changes count as committed
    and waiting if they are complete and cannot be judged yet, because a transaction that began
    before them is open or a change that their replica wrote before them has not arrived.

    The delay of an agreement is how long ago the time is up to which its consumer has everything
    that each other replica wrote, and the longest that it was today (UTC).

    With --replica it shows how far the hub epochs are: committed, reflected, not sent yet, sent and
    not applied, applied and not read yet.
    """
    configured, reader = opened(config)
    if replica is not None:
        from streaming.cli.look import flight  # noqa: PLC0415  # a plain `status` looks at no changelog

        flight.answer(configured, reader, replica, as_json=as_json)
        return
    found = hub_status(configured, reader, now().timestamp())
    needs = problems(found)
    if as_json:
        write_json(status_document(found))
    else:
        _show(found, needs)
    if needs:
        raise typer.Exit(ExitCode.NO)


def _show(found: HubStatus, needs: Sequence[Problem]) -> None:
    for number, one in enumerate(needs, 1):
        of = f" {number} of {len(needs)}" if len(needs) > 1 else ""
        write_sentence(f"problem{of}: {one.what}; {one.remedy}")
    if not needs:
        write_line(_in_order(found))
    for warning in (
        *_untaken_configuration(found),
        *unknown_topic_warnings(found.unknown_topics),
        *unreplicated_warnings(found.unreplicated),
        *schema_warnings(found.schema_differences),
        *local_warnings(found.local_writes),
    ):
        write_sentence(warning)
    write_line()
    write_pairs(_head(found))
    write_line()
    replicas = ("rid", "replica", "state", "session", "epoch", "last seen", "max CSN")
    write_table(
        (*replicas, "pending", "waiting", "oldest pending"),
        (
            (
                one.rid,
                one.name,
                f"{replica_state(one, found)}{', paused' if one.paused else ''}",
                one.session and one.session[:8],
                one.epoch,
                None if one.seen_age_s is None else as_age(one.seen_age_s),
                one.max_csn,
                one.pending,
                one.waiting,
                None if one.oldest_pending_age_s is None else as_age(one.oldest_pending_age_s),
            )
            for one in found.replicas
        ),
    )
    write_line()
    write_table(
        ("agreement", "consumer", "state", "sent", "acked", "lag", "level", "delay", "worst today"),
        (
            (
                one.name,
                one.consumer,
                agreement_state(one, found),
                one.sent_covers,
                one.acked_covers,
                one.lag_epochs,
                one.level,
                _longest(delay.delay_s for delay in one.delays),
                _longest(delay.worst_today_s for delay in one.delays),
            )
            for one in found.agreements
        ),
    )
    for leaving in found.leaving:
        write_sentence(leaving.text)
    for agreement in found.agreements:
        if agreement.is_archive:
            write_sentence(f"{agreement.name}: {agreement.archive_text}")
        if agreement.resync is not None:
            write_sentence(f"{agreement.name}: {agreement.resync.waits_text}")
        if agreement.hold_left_s:
            left = as_duration(agreement.hold_left_s)
            write_sentence(
                f"{agreement.name}: what it lacks is kept for another {left}; behind that it gets a"
                " full copy when it comes back"
            )
        if agreement.delayed is not None:
            write_sentence(f"{agreement.name}: {agreement.delayed.text}")
        if agreement.packets is not None:
            write_sentence(f"{agreement.name}: {agreement.packets.text}")
        if agreement.comparison is not None:
            write_sentence(f"{agreement.name}: {agreement.comparison.text}")
    write_line()
    _show_counters(found.replicas, found.counters)


def unknown_topic_warnings(topics: Iterable[str]) -> Iterator[str]:
    """A sentence for each topic that is written, or was, for a replica that nobody configured."""
    for one in topics:
        yield (
            f"warning: {one} is the topic of no configured replica, so it is not read: add the"
            " replica, or delete the topic"
        )


def _longest(delays_s: Iterable[float]) -> str | None:
    longest_s = max(delays_s, default=None)
    return None if longest_s is None else as_duration(longest_s)


def _in_order(found: HubStatus) -> str:
    replicas = as_count(len(found.replicas), "replica")
    agreements = as_count(len(found.agreements), "agreement")
    return f"in order: {replicas}, {agreements}, nothing needs a person"


def _head(found: HubStatus) -> list[tuple[str, object]]:
    kept, conflicts = found.quarantine, found.conflicts
    handling = _handling(found.replicas)
    return [
        ("hub", f"{found.hub}, state in {found.state}"),
        ("last commit", _last_commit(found)),
        ("position", _position(found)),
        ("unread", _unread(found)),
        ("pending", _open(found.pending) + _paused(found.replicas)),
        ("quarantine", f"{kept.kept} kept ({as_counts(kept.by_reason)})"),
        ("conflicts", f"{conflicts.total} ({as_counts(conflicts.by_kind)})\n{handling}"),
        ("history", _history(found.history)),
        ("last batch", as_counts(found.counts)),
        ("totals", as_counts(found.totals)),
    ]


def _history(found: KeptHistory) -> str:
    """From where on it is kept, and how large the tables are, the largest first."""
    begins = f"behind hub epoch {found.purge_epoch}" if found.purge_epoch else "from the beginning"
    by_size = sorted(found.tables.items(), key=lambda one: -one[1].bytes)
    sizes = (f"{name} {as_bytes(one.bytes)}" for name, one in by_size)
    held = f"; {found.hold.text}" if found.hold else ""
    return "\n".join([f"kept {begins}{held}", ", ".join(sizes)])


def _open(pending: PendingSummary) -> str:
    counts = f"{as_count(pending.pending, 'change')}, and {pending.waiting} committed and waiting"
    if pending.oldest is None or pending.oldest_age_s is None:
        return counts
    age = as_age(pending.oldest_age_s)
    return f"{counts}; the oldest was received {age}, in transaction {pending.oldest}"


def _paused(replicas: Sequence[ReplicaSummary]) -> str:
    names = ", ".join(str(one.name or one.rid) for one in replicas if one.paused)
    if not names:
        return ""
    return f"\npaused at limits.open_transactions: {names}; abort one or raise the limit"


def _last_commit(found: HubStatus) -> str:
    planned = found.planned_batch
    unfinished = f"; batch {planned} is planned and not committed" if planned else ""
    if found.age_s is None:
        return f"none yet{unfinished}"
    return f"{as_age(found.age_s)}, by {found.process}{unfinished}"


def _unread(found: HubStatus) -> str:
    """What the topics held at the hub's last poll, and when that was."""
    if found.polled_age_s is None:
        return "unknown: the hub has not polled Kafka yet"
    of = [f"{as_count(count, 'record')} of {name}" for name, count in found.unread.items()]
    return f"{', '.join(of) or 'nothing'}, as of {as_age(found.polled_age_s)}"


def _position(found: HubStatus) -> str:
    return f"hub epoch {found.hub_epoch}, batch {found.batch}, generation {found.generation or '-'}"


def _handling(replicas: Sequence[ReplicaSummary]) -> str:
    """The replicas with conflict handling in progress, as text; empty if there are none."""
    names = [str(one.name or one.rid) for one in replicas if one.conflict_handling]
    return f"conflict handling in progress: {', '.join(names)}" if names else ""


def _show_counters(
    replicas: Sequence[ReplicaSummary], counters: Sequence[ConflictCounters]
) -> None:
    """The conflict epochs of each replica, and the counters if there are any."""
    write_table(
        ("replica", "MRE", "last conflict epoch", "last stable epoch", "conflict handling"),
        (
            (
                one.name or one.rid,
                one.mre,
                one.last_conflict_epoch,
                one.last_stable_epoch,
                _progress(one),
            )
            for one in replicas
        ),
    )
    if not counters:
        return
    write_line()
    write_table(
        ("replica", "table", "counter", "total"),
        (
            (of.replica, of.table, name, count)
            for of in counters
            for name, count in of.counters.items()
        ),
    )


def _progress(one: ReplicaSummary) -> str | None:
    if not one.conflict_handling:
        return None
    return f"in progress until it has reflected {one.last_conflict_epoch}"


def _untaken_configuration(found: HubStatus) -> Iterator[str]:
    """Say that a version waits to be taken over; what is shown is of the one before."""
    if found.untaken_config is not None:
        yield (
            f"configuration {found.untaken_config} was applied, and the hub has not taken it yet:"
            f" it goes on by configuration {found.config_version or 0}; a running hub takes it"
            " within seconds, or says in its log why it cannot"
        )
