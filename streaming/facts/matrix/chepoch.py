"""What `chepoch` and `recoverpacket` would do: the row of a consumer, before and after."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from checkpoints.reading.numbers import NumberedEpoch, commit_before, first_within, numbers_at
from checkpoints.reading.reader import Reader
from checkpoints.tables import TableName
from streaming.config.cluster import AgreementConfig
from streaming.config.config import Config
from streaming.core.matrix.rows import MovedColumn, moved
from streaming.core.model.command import RowOrder
from streaming.core.model.errors import ConfigError, QuestionError
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.facts.consumers.ruvs import state_of
from streaming.facts.matrix.rows import counted_row
from streaming.facts.names import committed, names_of


@dataclass(frozen=True, slots=True)
class RowEntry:
    """A column of the row that changes."""

    origin: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class RowChange:
    """How the row of a consumer changes; `order`: what does it, None: nothing is to be done.

    `is_own_word`: what was asked for is below what the consumer has acknowledged, which it becomes.
    `begins_resync`: a resync is under way, which begins again.
    """

    agreement: str
    consumer: str
    before: int
    after: int
    entries: tuple[RowEntry, ...]
    order: RowOrder | None
    is_own_word: bool = False
    begins_resync: bool = False


@dataclass(frozen=True, slots=True)
class _Asked:
    """An agreement whose row is to be changed."""

    config: Config
    reader: Reader
    hub: HubState
    of: AgreementConfig
    state: AgreementState

    def change(self, target: int, *, raise_only: bool) -> RowChange:
        """The change of the row to that of this hub epoch, or to the consumer's own word."""
        state, rid = self.state, self.config.replica(self.of.consumer).rid
        after = max(target, state.acked_covers)
        change = RowChange(
            self.of.name,
            self.of.consumer,
            state.estimated,
            after,
            (),
            None,
            is_own_word=target < after,
            begins_resync=state.resync is not None,
        )
        if after == state.estimated or (raise_only and after < state.estimated):
            return replace(change, after=state.estimated)
        epochs = self.reader.table(TableName.EPOCHS)
        row, new = numbers_at(epochs, state.estimated), numbers_at(epochs, after)
        ruv = new.ruvs.get(self.config.dataset_of(self.of), NOTHING_KNOWN)
        order = RowOrder(self.of.name, after, tuple(ruv.text()))
        return replace(change, entries=self._entries(row, new, rid), order=order)

    def _entries(self, row: NumberedEpoch, new: NumberedEpoch, rid: int) -> tuple[RowEntry, ...]:
        names = names_of(self.config)
        columns: tuple[MovedColumn, ...] = moved(
            counted_row(self.hub, row.numbers, rid), counted_row(self.hub, new.numbers, rid)
        )
        return tuple(
            RowEntry(names.get(o, f"rid {o}"), was, becomes) for o, was, becomes in columns
        )


def by_numbers(
    config: Config, reader: Reader, name: str, numbers: Mapping[str, int], *, raise_only: bool
) -> RowChange:
    """The change to the numbers of some origins; the other columns follow the hub epoch.

    A row is that of one hub epoch: of the first whose row is the largest within these numbers.
    ConfigError: the row is the hub's own, or there is no such origin; QuestionError: nothing is
    sent to that consumer.
    """
    asked = _asked(config, reader, name)
    rids = {known: rid for rid, known in names_of(config).items()}
    unknown = [origin for origin in numbers if origin not in rids]
    if unknown:
        raise ConfigError(f"there is no origin {unknown[0]!r}: use one of {', '.join(rids)}")
    wanted = {rids[origin]: number for origin, number in numbers.items()}
    beyond = [
        one for one, number in numbers.items() if number > asked.hub.numbers.get(rids[one], 0)
    ]
    if beyond:
        has = asked.hub.numbers.get(rids[beyond[0]], 0)
        raise ConfigError(
            f"the hub has the changes of {beyond[0]} up to {has}: {beyond[0]}={numbers[beyond[0]]}"
            " is no row of it"
        )
    rid = config.replica(asked.of.consumer).rid
    if rid in wanted:
        raise ConfigError(
            f"{asked.of.consumer} has all of its own changes that the hub has: leave"
            f" {asked.of.consumer}={wanted[rid]} out"
        )
    first = first_within(reader, wanted, asked.state.acked_covers, asked.hub.hub_epoch)
    target = asked.state.acked_covers - 1 if first is None else first
    return asked.change(target, raise_only=raise_only)


def by_own_word(config: Config, reader: Reader, name: str, *, raise_only: bool) -> RowChange:
    """The change to what the consumer has acknowledged; errors as in `by_numbers`."""
    asked = _asked(config, reader, name)
    return asked.change(asked.state.acked_covers, raise_only=raise_only)


def by_time(config: Config, reader: Reader, name: str, since_ms: int) -> RowChange:
    """The change to the row as it stood before a time; errors as in `by_numbers`.

    QuestionError also if no row that old is kept.
    """
    asked = _asked(config, reader, name)
    then = commit_before(reader, since_ms)
    known = then.state.agreements.get(asked.of.name) if then is not None else None
    if known is None or known.session is None:
        raise QuestionError(
            f"no row of {asked.of.consumer} is kept that is so old:"
            f" use `slackwater chepoch {asked.of.name} --actual`"
        )
    return asked.change(known.estimated, raise_only=False)


def _asked(config: Config, reader: Reader, name: str) -> _Asked:
    hub = committed(reader)
    if name == config.hub.name:
        raise ConfigError(f"the row of {name} is the hub's own, which is fact: it cannot be set")
    named = [one for one in config.agreements if name in (one.name, one.consumer)]
    if not named:
        known = ", ".join(one.consumer for one in config.agreements) or "none is configured"
        raise ConfigError(f"nothing is sent to {name!r}: use one of {known}")
    state = state_of(hub, named[0].name)
    if not state.is_sent_to:
        raise QuestionError(
            f"{named[0].consumer}, agreement {named[0].name} is {state.status_text}: nothing is"
            " sent to it now, and what it lacks is found anew when something is"
        )
    return _Asked(config, reader, hub, named[0], state)
