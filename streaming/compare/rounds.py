"""A continuous comparison: each consumer with the hub, when its round is due, at a bounded cost."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial

from checkpoints.config import store_comparison
from checkpoints.reading.reader import open_state
from checkpoints.store import StateStore, storage_errors
from streaming.compare.lag import lag_of, silence_of
from streaming.compare.run import Pace, Waiting, compared_tables
from streaming.compare.sides import (
    HUB,
    in_common,
    opened_side,
    side_named,
    tables_between,
)
from streaming.config.cluster import AgreementConfig
from streaming.config.comparison import CompareConfig
from streaming.config.config import Config
from streaming.core.access.root import StateRoot
from streaming.core.model.errors import ConfigError, HubError
from streaming.core.text.wording import as_count
from streaming.facts.consumers.compared import ComparedRound, FailedRound, doubts_text
from streaming.facts.names import serving
from streaming.facts.status.local_writes import told_writes

AGAIN_S = 300.0
"""After a failure the next round begins so soon, unless its interval is shorter."""

STORE_EVERY_S = 3600.0
"""A failure that goes on is stored so often."""


@dataclass(frozen=True, slots=True)
class RoundOptions:
    """What was said on the command line, over the configuration; None: nothing.

    `rounds`: how many each consumer has; 0: they never end.
    """

    settle_s: float | None = None
    every_s: float | None = None
    rows_per_s: int | None = None
    load: str | None = None
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerRounds:
    """The rounds of one consumer."""

    agreement: AgreementConfig
    database: str
    every_s: float
    rows_per_s: float
    load: str | None


Tell = Callable[[str, ComparedRound | HubError], None]
"""Is told of each round by its consumer: what it found, or why it could not be."""


def consumer_rounds(
    config: Config, databases: Mapping[str, str], options: RoundOptions
) -> list[ConsumerRounds]:
    """Those of these databases, consumer -> DSN; without one those of the sections `compare`.

    ConfigError: a database is of no consumer.
    """
    agreements = {one.consumer: one for one in config.agreements}
    for name in databases:
        if name not in agreements:
            raise ConfigError(
                f"--database {name}: no agreement has this consumer: use one of"
                f" {', '.join(agreements) or 'none'}"
            )
    named = databases or {name: one.database for name, one in config.compared.items()}
    return [_rounds_of(agreements[name], dsn, options) for name, dsn in named.items()]


def _rounds_of(agreement: AgreementConfig, dsn: str, options: RoundOptions) -> ConsumerRounds:
    own = agreement.compare or CompareConfig(database=dsn)
    return ConsumerRounds(
        agreement,
        dsn,
        own.every_s if options.every_s is None else options.every_s,
        options.rows_per_s or own.rows_per_s,
        options.load or own.load,
    )


def go_round(
    config: Config, consumers: Sequence[ConsumerRounds], options: RoundOptions, tell: Tell
) -> None:
    """Compare each consumer when its round is due, one after the other, and store what it found.

    A database that cannot be read is told of and stored, and tried again in its next round; a state
    that cannot be read is told of.
    """
    due_s = dict.fromkeys(range(len(consumers)), time.monotonic())
    done, failures = dict.fromkeys(due_s, 0), _Failures(config.hub.state)
    while due_s:
        place = min(due_s, key=due_s.__getitem__)
        one = consumers[place]
        time.sleep(max(0.0, due_s[place] - time.monotonic()))
        due_s[place] = time.monotonic() + one.every_s
        try:
            with storage_errors(config.hub.state):
                found = _compared(config, one, options)
        except HubError as error:
            due_s[place] = min(due_s[place], time.monotonic() + AGAIN_S)
            tell(one.agreement.consumer, error)
            failures.store(one.agreement.name, " ".join(str(error).split()))
        else:
            failures.stored.pop(one.agreement.name, None)
            if found is not None:
                tell(one.agreement.consumer, found)
        done[place] += 1
        if done[place] == options.rounds:
            del due_s[place]


@dataclass(frozen=True, slots=True)
class _Failures:
    """Agreement -> the failure of its last round as it was stored, and when."""

    root: StateRoot
    stored: dict[str, tuple[str, float]] = field(default_factory=dict)

    def store(self, agreement: str, reason: str) -> None:
        """Store another failure, or that one again after an hour; a state may be away as well."""
        known, at_s = self.stored.get(agreement, ("", 0.0))
        if known == reason and time.monotonic() - at_s < STORE_EVERY_S:
            return
        with suppress(HubError), storage_errors(self.root):
            text = FailedRound(agreement, reason).text()
            store_comparison(StateStore(self.root), text, round(time.time() * 1000))
            self.stored[agreement] = reason, time.monotonic()


def _compared(config: Config, one: ConsumerRounds, options: RoundOptions) -> ComparedRound | None:
    """What a round found, stored; None: the replica is retired for good.

    The hub's rows of a table are read at its beginning, and each of its ranges when its time has
    come; what was written in between is in flight, and is looked at again.
    """
    root, name = config.hub.state, one.agreement.consumer
    if one.agreement not in serving(config, open_state(root)).agreements:
        return None
    side = side_named(config, name, {name: one.database})
    of_hub, wanted = side_named(config, HUB, {}), config.tables_of(one.agreement)
    known = tables_between(config, of_hub, side)
    tables = [known[table] for table in known if table in wanted]
    pair = in_common(config, of_hub, side, tables)
    lag_s, silent_s = partial(lag_of, config, [name]), partial(silence_of, config)
    waiting = Waiting(options.settle_s, time.sleep, time.monotonic, lag_s, silent_s)
    told = told_writes(open_state(root)).get(_rid_of(config, name), {})
    pace, began_s = Pace(one.rows_per_s, time.sleep, time.monotonic), time.monotonic()
    with (
        opened_side(config, pair.first, one.load, pair.second) as hub,
        opened_side(config, pair.second, one.load, pair.first) as replica,
    ):
        found = compared_tables(
            pair.tables, hub, replica, waiting, parts=pace.parts, ignored=pair.ignored
        )
    result = ComparedRound(
        one.agreement.name,
        rows=sum(max(each.rows) for each in found),
        differing=sum(len(each.differing) for each in found),
        more_differ=any(each.is_cut for each in found),
        in_flight=sum(each.in_flight for each in found),
        written=sum(each.written for each in found),
        seconds=round(time.monotonic() - began_s, 3),
        behind_s=max((s for each in found if (s := each.behind_s) is not None), default=None),
        settled={
            each.table.name: asdict(told[each.table.name])
            for each in found
            if each.table.name in told and each.is_equal
        },
    )
    store_comparison(StateStore(root), result.text(), round(time.time() * 1000))
    return result


def _rid_of(config: Config, replica: str) -> int:
    return next(one.rid for one in config.replicas if one.name == replica)


def round_text(consumer: str, found: ComparedRound) -> str:
    """What a round found, as a line."""
    least = "at least " if found.more_differ else ""
    return (
        f"{consumer}: {as_count(found.rows, 'row')} compared, {least}{found.differing} differ"
        f" ({found.seconds:.0f} s){doubts_text(found)}"
    )
