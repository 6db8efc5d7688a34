"""What needs a person, the gravest first, each with what to do; and states that facts support."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from streaming.core.access.rights import REMEDY
from streaming.core.model.statuses import AgreementStatus, AwayReason, ReplicaStatus
from streaming.core.records.kept_bytes import SHORT_HEAD_BYTES
from streaming.core.text.wording import as_count
from streaming.facts.consumers.compared import other_rows_text
from streaming.facts.consumers.divergent import DivergenceKind, differing_text
from streaming.facts.consumers.lacking import COLUMN_REMEDY
from streaming.facts.freshness import HubPresence
from streaming.facts.status.agreements import AgreementSummary
from streaming.facts.status.hub import HubStatus
from streaming.facts.status.liveness import UnheardReplica
from streaming.facts.status.replicas import ReplicaSummary


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not go away by itself; `remedy`: what to do about it."""

    what: str
    remedy: str


def problems(found: HubStatus) -> tuple[Problem, ...]:
    """What needs a person, the gravest first; empty: nothing does."""
    configured = [one for one in found.replicas if one.name is not None]
    return (
        *_stale(found),
        *_stopped(configured),
        *_stopped_alone(found),
        *_paused_tables(found),
        *_unreadable(configured),
        *(Problem(what, why) for what, why in found.packets.items()),
        *_paused(configured),
        *_spent(configured),
        *_waiting(configured),
        *([] if found.stale else _unheard(configured, found)),
        *(Problem(one.text, COLUMN_REMEDY) for one in found.waited),
        *_refused(found),
        *_uncarried(found),
        *_compared(found),
        *_not_compared(found),
        *_unnamed(found),
        *_kept(found),
    )


def status_document(found: HubStatus) -> dict[str, Any]:
    """The status with what needs a person, as one JSON document."""
    return found.document() | {"problems": [asdict(one) for one in problems(found)]}


def replica_state(one: ReplicaSummary, found: HubStatus) -> str:
    """The replica's state for people; `live` only while the hub and its agent are heard."""
    if one.state != ReplicaStatus.LIVE:
        return one.state
    if found.stale:
        return f"unknown, was {one.state}"
    if one.unreadable is not None:
        return f"unreadable, was {one.state}"
    return f"no heartbeat, was {one.state}" if _unheard_as(one.name, found) else one.state


def agreement_state(one: AgreementSummary, found: HubStatus) -> str:
    """The agreement's state for people; `in_sync` only while hub and consumer are heard."""
    shown = one.resync.state_text if one.resync else one.state
    if one.state not in _SENT_TO:
        return shown
    if found.stale:
        return f"unknown, was {shown}"
    return f"no heartbeat, was {shown}" if _unheard_as(one.consumer, found) else shown


_SENT_TO = (AgreementStatus.IN_SYNC, AgreementStatus.CATCHING_UP, AgreementStatus.RESYNC)


def _unheard_as(name: str | None, found: HubStatus) -> UnheardReplica | None:
    """Why nothing is heard of this replica; None: it is heard."""
    return next((one for one in found.unheard if one.replica == name), None)


_WAITS = "its log says what it waits for"
_START = "start it with `slackwater run`, or see its log"
_BY_PRESENCE = {
    HubPresence.RUNNING: _WAITS,
    HubPresence.STARTING: _WAITS,
    HubPresence.HANGS: "continue its process if it was stopped (`kill -CONT`); otherwise see its"
    " log, end it and start it again",
    HubPresence.ABSENT: _START,
    HubPresence.UNKNOWN: _START,
}
"""What to do about facts that are too old, by whether a hub is there."""


def _stale(found: HubStatus) -> Iterator[Problem]:
    if found.stale is not None:
        yield Problem(found.stale, _BY_PRESENCE[found.presence])


def _stopped(replicas: list[ReplicaSummary]) -> Iterator[Problem]:
    for one in replicas:
        if one.remedy is not None:
            yield Problem(f"{one.name} is stopped: {one.state}", one.remedy)


def _stopped_alone(found: HubStatus) -> Iterator[Problem]:
    """The agreements that are sent nothing; a hub that reads along serves nobody, as it should."""
    configured = (one for one in found.agreements if AgreementStatus.RETIRED not in one.state)
    reads_along = all(map(_is_elsewhere, configured))
    for one in found.agreements:
        if one.remedy is not None and not (reads_along and _is_elsewhere(one)):
            yield Problem(
                f"{one.consumer} is sent nothing: agreement {one.name} is {one.state}", one.remedy
            )


def paused_remedy(agreement: str, tables: Sequence[str]) -> str:
    """Say how tables are sent again that an operator paused."""
    named = " ".join(f"--table {table}" for table in tables)
    return f"an operator paused it: `slackwater resume {agreement} {named}` brings it whole"


def _paused_tables(found: HubStatus) -> Iterator[Problem]:
    for one in found.agreements:
        if one.paused:
            yield Problem(
                f"{one.consumer} is sent nothing of {', '.join(one.paused)}: paused in agreement"
                f" {one.name}",
                paused_remedy(one.name, one.paused),
            )


def _is_elsewhere(one: AgreementSummary) -> bool:
    return one.resync is not None and one.resync.away is AwayReason.ELSEWHERE


def _unreadable(replicas: list[ReplicaSummary]) -> Iterator[Problem]:
    for one in replicas:
        if one.unreadable is not None:
            yield Problem(
                f"{one.name} is unreadable: {one.unreadable}",
                f"{REMEDY}; the hub goes on with its topic by itself",
            )


def _paused(replicas: list[ReplicaSummary]) -> Iterator[Problem]:
    for one in replicas:
        if one.paused:
            yield Problem(
                f"{one.name} is paused: it has limits.open_transactions open transactions",
                f"`slackwater abort {one.oldest_pending or 'CSN'}` ends the oldest one",
            )


def _spent(replicas: list[ReplicaSummary]) -> Iterator[Problem]:
    for one in replicas:
        if one.kept_ratio >= 1:
            yield Problem(
                f"{one.name} has spent its budget of quarantine:"
                f" {as_count(one.kept_records, 'record')}, {one.kept_bytes} bytes; of further ones"
                f" {SHORT_HEAD_BYTES} bytes are kept, and the whole in its topic only",
                f"`slackwater quarantine list --replica {one.name}` shows them; release or drop"
                f" them, as by `slackwater quarantine drop --replica {one.name} --reason json`, or"
                " raise limits.quarantine_bytes and limits.quarantine_records",
            )


def _waiting(replicas: list[ReplicaSummary]) -> Iterator[Problem]:
    for one in replicas:
        if one.waiting and one.missing_opno is not None:
            yield Problem(
                f"{as_count(one.waiting, 'change')} of {one.name} waiting for the one with opno"
                f" {one.missing_opno}, which the hub has not got",
                "restart its agent, which publishes again what the hub did not take; if that does"
                f" not help, `slackwater reinit {one.name}`",
            )


def _unheard(replicas: list[ReplicaSummary], found: HubStatus) -> Iterator[Problem]:
    """The replicas whose agents say nothing; one that is named otherwise is not named twice."""
    away = {one.consumer: one.resync.away for one in found.agreements if one.resync}
    named = {name for name, why in away.items() if why is AwayReason.SILENT}
    named |= {one.name or "" for one in replicas if one.unreadable is not None}
    for one in (replica for replica in replicas if replica.name not in named):
        if one.state == ReplicaStatus.SILENT:
            yield Problem(f"{one.name} has never said hello", "start its agent")
        elif one.state == ReplicaStatus.LIVE and (why := _unheard_as(one.name, found)):
            yield Problem(why.text, "start its agent; if it runs, its log says what it waits for")


def _differing_of(kind: DivergenceKind, found: HubStatus) -> list[tuple[str, int]]:
    """(replica, how many of its rows differ in this way), by name."""
    return sorted(Counter(one.replica for one in found.differing if one.kind is kind).items())


def _refused(found: HubStatus) -> Iterator[Problem]:
    waiting = Counter[str]()
    for table in {(one.replica, one.table): one for one in found.waited}.values():
        waiting[table.replica] += table.rows
    for name, refused in _differing_of(DivergenceKind.REFUSED, found):
        count = refused - waiting[name]
        if count <= 0:
            continue
        yield Problem(
            f"the database of {name} refuses {differing_text(count, found.differing)}",
            f"`slackwater conflicts list --kind refused --open --loser {name}` says why;"
            f" remove the cause, then `slackwater conflicts retry --replica {name}`",
        )


def _uncarried(found: HubStatus) -> Iterator[Problem]:
    for name, count in _differing_of(DivergenceKind.UNCARRIED, found):
        yield Problem(
            f"{name} alone has {differing_text(count, found.differing)} that nobody else can take",
            f"`slackwater conflicts list --kind uncarried --loser {name}` says why, and what to do",
        )


def _compared(found: HubStatus) -> Iterator[Problem]:
    for one in found.agreements:
        if one.comparison is not None and one.comparison.finds_other_rows:
            yield Problem(
                other_rows_text(one.consumer, one.comparison),
                f"`slackwater compare hub {one.consumer} --database {one.consumer}=DSN` names them,"
                " and sets them right with --repair; the next round finds them equal",
            )


def _not_compared(found: HubStatus) -> Iterator[Problem]:
    for one in found.agreements:
        if one.not_compared is not None:
            yield Problem(
                f"{one.name}: not compared: {one.not_compared}",
                "the hub's log says more; the next round that ends well ends this",
            )


def unnamed_text(replica: str, counts: Mapping[str, int]) -> str:
    """Say that a replica may have written what nobody got, and by which records."""
    count = sum(counts.values())
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
    return (
        f"{as_count(count, 'record')} of {replica} in quarantine {'name' if count > 1 else 'names'}"
        f" no row ({reasons}), so it may have written what nobody got"
    )


def unnamed_remedy(replica: str, counts: Mapping[str, int]) -> str:
    """Say how to look at such records, and how to drop them."""
    drops = (
        f"`slackwater quarantine drop --replica {replica} --reason {reason} --yes`"
        for reason in sorted(counts)
    )
    return (
        f"`slackwater quarantine list --replica {replica}` shows them; where they are no writes of"
        f" its applications, {' and '.join(drops)}"
    )


def _unnamed(found: HubStatus) -> Iterator[Problem]:
    for name, counts in sorted(found.unnamed.items()):
        yield Problem(unnamed_text(name, counts), unnamed_remedy(name, counts))


def _kept(found: HubStatus) -> Iterator[Problem]:
    kept = found.quarantine.undecided - sum(sum(of.values()) for of in found.unnamed.values())
    differing = sum(one.kind is DivergenceKind.QUARANTINED for one in found.differing)
    if kept > 0:
        yield Problem(
            f"{as_count(kept, 'record')} in quarantine",
            "`slackwater quarantine list` shows them; release or drop each",
        )
    if differing:
        yield Problem(
            f"{differing_text(differing, found.differing)} may differ from the hub's",
            "`slackwater level` lists them",
        )
