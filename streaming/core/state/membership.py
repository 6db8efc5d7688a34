"""Who takes part: the state follows the configuration, and keeps what is configured no more."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from streaming.core.matrix.packets import PacketFeed
from streaming.core.model.ruv import Ruv
from streaming.core.state.agreement_state import AgreementState, SendRange
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.topology import Subscription, Topology
from streaming.core.tracking.ranges import KeyRange, RangeRealign, with_range


@dataclass(frozen=True, slots=True)
class LastTopology:
    """The topology of the last commit, and the hub's clock then."""

    topology: Topology
    at_ms: int

    def masked(self, agreement: str) -> Collection[str]:
        """The tables that an agreement sent with masks in place of values."""
        subscription = self.topology.subscriptions.get(agreement)
        columns = subscription.columns if subscription else {}
        return {table for table, known in columns.items() if known.masks}


def adopted(
    state: HubState,
    topology: Topology,
    rids: Iterable[int],
    sending: Collection[str] | None = None,
    before: LastTopology | None = None,
) -> HubState:
    """The state under a configuration (docs/protocol.md, What is configured no more).

    Every configured replica, agreement and data set has a place; the others are retired.
    `sending`: the agreements that may be sent something, None: all that are configured. A hub that
    finishes a batch of an earlier configuration sends nothing for what was removed since.
    `before`: where the configuration changes; a consumer that is sent more tables, or other rows of
    one, gets them whole.
    """
    configured = dict.fromkeys(rids)
    known = _of_agreements(state, topology)
    known |= {r: ReplicaState(r) for r in configured if r not in state.replicas}
    subscriptions = topology.subscriptions
    agreements = state.agreements | {
        name: _agreement(state, one) for name, one in subscriptions.items()
    }
    sent = subscriptions.keys() & (subscriptions if sending is None else sending)
    nothing = {dataset: Ruv(state.replicageneration) for dataset in topology.datasets}
    after = replace(
        state,
        ruvs={**nothing, **state.ruvs},
        purge_ruvs={**nothing, **state.purge_ruvs},
        replicas={
            rid: one.revived() if rid in configured else one.retired() for rid, one in known.items()
        },
        agreements={
            name: one.revived() if name in sent else _retired(one, state.to_send.get(name))
            for name, one in agreements.items()
        },
    )
    return after if before is None else _rescanning(after, topology, before)


def _rescanning(state: HubState, topology: Topology, before: LastTopology) -> HubState:
    """The state whose agreements scan the tables of which they did not send the same before.

    What the consumer writes there until it has them is concurrent: it has not seen their rows
    (additions.md 5.8, FFLOOR; a narrower filter needs no such bar, and one rule is simpler). Where
    it was sent masks in place of values it is rejected, for it has these in its rows. A table that
    was not configured has no rows, and those of its consumer are not to be deleted.
    """
    agreements, ranges = dict(state.agreements), state.ranges
    for name, tables in _tables_sent_otherwise(topology, before.topology).items():
        for table in sorted(tables):
            one = agreements[name]
            whole = RangeRealign(
                KeyRange(table),
                one.consumer,
                state.hub_epoch + 1,
                rejects_transaction=table in before.masked(name),
            )
            ranges = with_range(ranges, whole)
            agreements[name] = one.rescanning(table, before.at_ms)
    return replace(state, agreements=agreements, ranges=ranges)


def _tables_sent_otherwise(topology: Topology, before: Topology) -> Mapping[str, frozenset[str]]:
    """Agreement -> the tables of which it sends the same consumer something else than before."""
    return {
        name: frozenset(
            table
            for table in one.tables & before.tables.keys()
            if table not in old.tables
            or not one.sends_as(old, table)
            or table in old.configured  # a column comes back, with values that were not sent
        )
        for name, one in topology.subscriptions.items()
        if (old := before.subscriptions.get(name)) is not None and old.consumer == one.consumer
    }


def _of_agreements(state: HubState, topology: Topology) -> dict[int, ReplicaState]:
    """The replicas; sessions of an agreement that is of another name now are of another hub.

    So is a state that was copied for a second hub: its sessions are of the first one's agreements.
    """
    before = {one.consumer: n for n, one in state.agreements.items() if not one.is_retired}
    renamed = {
        rid: name
        for rid, name in before.items()
        if topology.agreement_of(rid) not in (None, name) and rid in state.replicas
    }
    return state.replicas | {
        rid: state.replicas[rid].of_agreement(name) for rid, name in renamed.items()
    }


def sending_only(state: HubState, names: Collection[str]) -> HubState:
    """The state that publishes to these agreements only; `adopted` retires the others."""
    return replace(
        state,
        agreements={n: one for n, one in state.agreements.items() if n in names},
        to_send={n: one for n, one in state.to_send.items() if n in names},
    )


def _retired(agreement: AgreementState, promised: SendRange | None) -> AgreementState:
    """The agreement when it is retired; what the last commit promised it is sent when it is back.

    A hub that starts does not repeat that, so nobody knows whether it was published.
    """
    if promised is None or agreement.is_retired:
        return agreement.retired()
    rewound = replace(
        agreement, scanned=promised.after, sent_epoch=promised.prev, sent_ruv=promised.known
    )
    return rewound.retired()


def _agreement(state: HubState, configured: Subscription) -> AgreementState:
    """The state of a configured agreement: a new one for another consumer than it had.

    Its consumer may have been sent anything that the hub has, by an agreement of another name.
    """
    known = state.agreements.get(configured.name)
    if known is not None and known.consumer == configured.consumer:
        return replace(known, feed=_feed(state, known, configured))
    new = AgreementState(configured.name, configured.consumer, published=state.hub_epoch)
    return replace(new, feed=PacketFeed() if configured.is_by_packets else None)


def _feed(
    state: HubState, agreement: AgreementState, configured: Subscription
) -> PacketFeed | None:
    """The packets of an agreement that is known.

    A feed that begins again numbers its packets above the earlier ones: each took a batch.
    """
    if not configured.is_by_packets:
        return None
    return agreement.feed or PacketFeed(number=state.batch)


def retired_of(state: HubState) -> tuple[frozenset[int], frozenset[str]]:
    """The retired replicas by rid, and the retired agreements by name."""
    rids = frozenset(rid for rid, one in state.replicas.items() if one.is_retired)
    return rids, frozenset(name for name, one in state.agreements.items() if one.is_retired)
