"""Whether every configured consumer has everything: `level`, or why not, or that none can say."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from checkpoints.commit.last_poll import read_poll
from checkpoints.reading.reader import Reader
from streaming.config.config import Config
from streaming.core.access.rights import REMEDY
from streaming.core.model.errors import SourceError
from streaming.core.schema.difference import SchemaDifference
from streaming.core.text.wording import as_count
from streaming.facts.consumers.compared import (
    ConsumerComparison,
    differing_consumers,
    recorded_rounds,
)
from streaming.facts.consumers.delayed import DelayedSending
from streaming.facts.consumers.divergent import DivergentRow, divergent_rows, unnamed_counts
from streaming.facts.consumers.lacking import WaitedColumn
from streaming.facts.consumers.lag import Lag, lags
from streaming.facts.consumers.packets import PacketSummary, packet_summary
from streaming.facts.consumers.resync import ConsumerResync, consumer_resyncs
from streaming.facts.consumers.unsettled import Unsettled, unread_records, unsettled
from streaming.facts.freshness import as_read, freshness, late_text
from streaming.facts.names import names_ever, names_of, serving
from streaming.facts.status.liveness import UnheardReplica, unheard_replicas
from streaming.facts.status.local_writes import LocalTable, local_tables
from streaming.facts.status.replicas import unreadable_replicas
from streaming.facts.status.schemas import schema_differences, unreplicated_columns

CONNECT_MS = 3_000

Ends = Mapping[str, int] | str
"""Topic -> where it ended when Kafka was asked; a text: why Kafka did not answer."""


@dataclass(frozen=True, slots=True)
class LeftUnread:
    """A replica that is configured no more, and how many records of its topic nobody reads."""

    rid: int
    replica: str
    records: int

    @property
    def text(self) -> str:
        """The same as a warning, with what to do."""
        return (
            f"warning: {as_count(self.records, 'record')} in the topic of {self.replica}, which is"
            " configured no more, nobody reads: name it in the configuration again, or take it out"
            f" for good with `slackwater clean-ruv {self.rid}`"
        )


@dataclass(frozen=True, slots=True)
class AgreementLevel:
    """A Lag for output: `lacking` holds the names of the replicas.

    `has_all`: its consumer has acknowledged all that the hub has; `level`: all that was written.
    `packets`: of a consumer that is sent packets. `delayed`: what waits by its delay, and is none
    of what it lacks. `paused`: the tables of which it is sent nothing.
    """

    name: str
    consumer: str
    state: str
    level: bool
    has_all: bool
    acked_covers: int
    lag_epochs: int
    lacking: tuple[str, ...]
    packets: PacketSummary | None
    delayed: DelayedSending | None = None
    paused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HubLevel:
    """Whether all consumers are level; ages in seconds, None before the first commit or poll.

    `cannot_say`: why the facts prove nothing: they are too old, Kafka does not answer, or one of
    `unheard` is not heard or may not be read. `unread`, `unpublished`, `waiting`, `ordered`,
    `stopped`, `differing`, `waited`: see `Unsettled`. `resyncs`: the consumers that are away or in
    resync.
    `unreplicated`: replica -> columns that stay in its database, which is no lack.
    `schema_differences`: those that matter, which is none either; nor is `other_rows`: consumer ->
    the last comparison of its rows, as old as it says; nor `local_writes`: the tables with rows
    that were written at one replica only; nor `left_unread`: what nobody reads in the topics of
    replicas that are configured no more. `unnamed`: replica -> reason -> its records in quarantine
    that name no row, so that it may have written what nobody got; `apart`: everything else is
    level.
    """

    level: bool
    apart: bool
    hub_epoch: int
    age_s: float | None
    polled_age_s: float | None
    cannot_say: tuple[str, ...]
    agreements: tuple[AgreementLevel, ...]
    unheard: tuple[UnheardReplica, ...]
    unread: dict[str, int]
    unpublished: dict[str, int]
    waiting: dict[str, int]
    ordered: dict[str, int]
    stopped: dict[str, str]
    resyncs: tuple[ConsumerResync, ...]
    differing: tuple[DivergentRow, ...]
    waited: tuple[WaitedColumn, ...]
    unnamed: dict[str, dict[str, int]]
    unreplicated: dict[str, tuple[str, ...]]
    schema_differences: tuple[SchemaDifference, ...]
    other_rows: dict[str, ConsumerComparison]
    local_writes: tuple[LocalTable, ...]
    left_unread: tuple[LeftUnread, ...]

    @property
    def lags(self) -> bool:
        """Return whether a consumer has not acknowledged everything that the hub has."""
        return not all(one.has_all for one in self.agreements)

    @property
    def only_reads(self) -> bool:
        """Return whether it would be level if the hub had read its topics to their ends."""
        is_settled = not (self.unpublished or self.ordered or self.stopped or self.differing)
        is_settled &= not self.waited
        return bool(self.unread) and is_settled and not (self.lags or self.cannot_say)


def hub_level(
    config: Config, reader: Reader, ask: Callable[[], Ends], now_s: float, max_age_s: float
) -> HubLevel:
    """Compare what the hub has with its topics, its consumers, and what it could not process.

    A replica that is retired for good need not be level, nor be read. `ask`: asks Kafka; not called
    if the facts are too old anyway.
    """
    reader = as_read(reader)
    config = serving(config, reader)
    age = freshness(reader, now_s)
    is_stale = age.is_stale(max_age_s)
    ends = {} if is_stale else ask()
    silent = () if is_stale else unheard_replicas(config, reader, age.as_of_s(now_s))
    refused = {} if is_stale else unreadable_replicas(config, reader)
    doubts = (
        *((late_text(age),) if is_stale else ()),
        *((ends,) if isinstance(ends, str) else ()),
        *(f"{name} is unreadable: {why}; {REMEDY}" for name, why in refused.items()),
        *(one.text for one in silent if one.replica not in refused),
        *_not_taken(reader, is_stale=is_stale),
    )
    unnamed = unnamed_counts(config, reader)
    open_ = unsettled(
        config,
        reader,
        is_known=not doubts,
        unread={} if isinstance(ends, str) else unread_records(config, reader, ends),
        opened=reader.open_changes(),
        differing=divergent_rows(config, reader),
        unnamed=unnamed,
        commands=reader.untaken_commands(),
    )
    of_each, rounds = lags(config, reader), recorded_rounds(reader)
    is_level = open_.is_only_unnamed and all(lag.has_all for lag in of_each)
    known = reader.commit.state.agreements if reader.commit else {}
    agreements = tuple(
        _agreement(lag, open_, names_of(config), packet_summary(known.get(lag.agreement), now_s))
        for lag in of_each
    )
    return HubLevel(
        level=is_level and not unnamed,
        apart=is_level and bool(unnamed),
        hub_epoch=reader.commit.state.hub_epoch if reader.commit else 0,
        age_s=age.committed_age_s,
        polled_age_s=age.polled_age_s,
        cannot_say=doubts,
        agreements=agreements,
        unheard=silent,
        unread=dict(open_.unread),
        unpublished=dict(open_.unpublished),
        waiting=dict(open_.waiting),
        ordered=dict(open_.ordered),
        stopped=dict(open_.stopped),
        resyncs=consumer_resyncs(config, reader, now_s),
        differing=tuple(open_.differing),
        waited=tuple(open_.waited),
        unnamed=unnamed,
        unreplicated=unreplicated_columns(config, reader),
        schema_differences=schema_differences(config, reader),
        other_rows=differing_consumers(config, rounds, now_s),
        local_writes=local_tables(config, reader, rounds),
        left_unread=tuple(_left_unread(config, reader, ends)),
    )


def unread_of(reader: Reader, topic: str, ends: Ends) -> tuple[int | None, str | None]:
    """How many records of a topic the hub has not read; None with the reason: nobody can say."""
    if isinstance(ends, str):
        return None, ends
    offset = reader.commit.offsets.get(topic, 0) if reader.commit else 0
    return max(0, ends.get(topic, 0) - offset), None


def left_replicas(config: Config, reader: Reader) -> dict[int, str]:
    """Rid -> name of the replicas that are configured no more, and were not taken out for good."""
    known = reader.commit.state.replicas if reader.commit else {}
    configured = names_of(config)
    gone = [
        rid
        for rid, one in known.items()
        if rid not in configured and one.is_retired and not one.is_retired_for_good
    ]
    names = names_ever(config, reader) if gone else {}
    return {rid: names.get(rid, str(rid)) for rid in gone}


def _left_unread(config: Config, reader: Reader, ends: Ends) -> Iterator[LeftUnread]:
    """What is left in the topics of those that are configured no more, as far as `ends` says."""
    for rid, name in left_replicas(config, reader).items():
        records, _ = unread_of(reader, config.changes_topic(name), ends)
        if records:
            yield LeftUnread(rid, name, records)


def _not_taken(reader: Reader, *, is_stale: bool) -> list[str]:
    """What of packets does not come through: it may hold what nobody else has."""
    poll = None if is_stale else read_poll(reader.root)
    return [f"{what}: {why}" for what, why in (poll.packets if poll else {}).items()]


def _agreement(
    lag: Lag, open_: Unsettled, names: Mapping[int, str], packets: PacketSummary | None
) -> AgreementLevel:
    return AgreementLevel(
        lag.agreement,
        lag.consumer,
        lag.state,
        open_.is_level(lag),
        lag.has_all,
        lag.acked_covers,
        lag.epochs,
        tuple(names.get(rid, str(rid)) for rid in lag.lacking),
        packets,
        lag.delayed,
        lag.paused,
    )


@dataclass(slots=True)
class TopicEnds:
    """Where the hub's topics ended when Kafka first answered."""

    known: dict[str, int] = field(default_factory=dict)

    def ask(self, config: Config, *others: str) -> Ends:
        """The ends, or why Kafka does not answer; `others`: replicas configured no more."""
        from connectors.kafka.topics import Topics  # noqa: PLC0415  # its import takes time

        kafka = config.kafka
        replicas = [*(replica.name for replica in config.replicas), *others]
        names = [config.changes_topic(name) for name in replicas]
        try:
            if not self.known.keys() >= set(names):
                with Topics(kafka.bootstrap_servers, kafka.options, CONNECT_MS) as topics:
                    self.known = topics.end_offsets(names)
        except SourceError as error:
            return str(error)
        return self.known
