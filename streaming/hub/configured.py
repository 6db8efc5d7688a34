"""What a batch needs of the configuration file, in the words of the core and of the hub."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from streaming.config.config import Config
from streaming.config.functions import loaded
from streaming.config.history import ConfigHistory, config_history
from streaming.config.sections import LimitsConfig
from streaming.core.intake.shares import BatchBounds
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.state.topology import Subscription, Topology
from streaming.hub.batch.settings import BatchSettings
from streaming.hub.purging import RetentionTimes
from streaming.hub.upkeep import MaterializeEvery
from streaming.stages.publish import ChunkLimits


def topology_of(config: Config, *, judges: bool = True) -> Topology:
    """What the pure core needs of the configuration; users' functions only where it judges."""
    tables = config.table_map()
    return Topology(
        tables,
        {one.name: config.subscription(one) for one in config.agreements},
        loaded(tables.values()) if judges else {},
        config.limits.reflections,
        config.limits.page_items,
        config.hub.covers_interval_ms,
        record_bytes=config.limits.record_bytes,
        refused_again_ms=config.limits.refused_again_ms,
        ack_timeout_ms=config.hub.ack_timeout_s * 1_000,
        resync_page_rows=config.limits.resync_page_rows,
        resync_pages=config.limits.resync_pages,
        skew_s=config.limits.skew_s,
        max_away_ms=config.retention.max_away_ms,
    )


def topology_before(
    topology: Topology,
    later: Topology,
    agreements: Collection[str],
    documents: Callable[[], Iterable[str]],
) -> Topology:
    """The topology with those of these agreements that it lacks, as each was configured last.

    To compare a later topology with: an agreement that comes back goes on where it was, so what it
    sends besides has to be sent whole. So have tables of which a column comes back: `configured`
    names them. `documents`: the configurations so far, the oldest first.
    """
    before = {name: table.columns.keys() for name, table in topology.tables.items()}
    wider = {
        name: columns
        for name, table in later.tables.items()
        if name in before and (columns := table.columns.keys() - before[name])
    }
    lacks_agreements = not topology.subscriptions.keys() >= {*agreements}
    texts = [*documents()] if wider or lacks_agreements else []
    found = dict[str, Subscription]()
    for text in texts if lacks_agreements else ():
        config = Config.from_document(text)
        found |= {one.name: config.subscription(one) for one in config.agreements}
    gone = {
        name: replace(one, tables=one.tables & topology.tables.keys())
        for name, one in found.items()
    }
    known = config_history(texts).tables
    back = {
        name: ColumnFilter(frozenset(before[name]))
        for name, columns in wider.items()
        if name in known and columns & known[name].columns.keys()
    }
    subscriptions = {**gone, **topology.subscriptions}
    return replace(
        topology,
        subscriptions={n: replace(one, configured=back) for n, one in subscriptions.items()},
    )


def settings_of(config: Config, *, judges: bool = True) -> BatchSettings:
    """What a batch needs of the configuration; what only publishes a batch does not judge."""
    return BatchSettings(
        topology_of(config, judges=judges),
        {config.changes_topic(replica.name): replica.rid for replica in config.replicas},
        {config.hub.rid: "hub", **{replica.rid: replica.name for replica in config.replicas}},
        config.hub.rid,
        ChunkLimits(config.limits.chunk_items, config.limits.chunk_bytes),
        _bounds(config.limits),
        config.limits.pending_changes,
        config.limits.open_transactions,
        config.limits.window_rows,
        config.limits.kept_image_bytes,
        MaterializeEvery(config.limits.materialize_every_epochs, config.limits.materialize_every_s),
        resync_workers=config.limits.resync_workers,
        updates_topics={config.updates_topic(a.name): a.name for a in config.agreements},
        writes=_writes(config),
        quarantine=config.limits.quarantine,
        retention=_retention(config),
    )


def _bounds(limits: LimitsConfig) -> BatchBounds:
    """How much a batch takes at most."""
    whole_s, shared_s = limits.batch_ms / 1_000, limits.flood_ms / 1_000
    return BatchBounds(limits.offsets_per_batch, whole_s, shared_s)


def _retention(config: Config) -> RetentionTimes:
    keep_ms = config.retention.keep_ms(config.hub.replay_window_h)
    return RetentionTimes(keep_ms, config.retention.conflicts_ms)


def _writes(config: Config) -> dict[int, frozenset[str]]:
    """Rid -> the tables that it may write, of the replicas that may not write all."""
    everything = frozenset(table.name for table in config.tables)
    found = {replica.rid: config.writes_of(replica) for replica in config.replicas}
    return {rid: tables for rid, tables in found.items() if tables != everything}


def with_retired(config: Config, settings: BatchSettings, history: ConfigHistory) -> BatchSettings:
    """Add what is not configured any more: replicas, columns of tables, masks."""
    names, topology = {**history.names, **settings.names}, settings.topology
    known = {
        name: ColumnFilter(frozenset(table.columns))
        for name, table in topology.tables.items()
        if name in history.tables and history.tables[name].columns.keys() - table.columns.keys()
    }
    subscriptions = {
        name: replace(one, configured=known) for name, one in topology.subscriptions.items()
    }
    returned = {
        name: back
        for name, table in topology.tables.items()
        if name in history.tables and (back := history.tables[name].left_out & table.columns.keys())
    }
    topology = replace(topology, subscriptions=subscriptions, returned=returned)
    retired = history.retired_topics(config)
    return replace(
        settings,
        topology=topology,
        names=names,
        retired_topics=retired,
        masked=history.masked_tables,
    )
