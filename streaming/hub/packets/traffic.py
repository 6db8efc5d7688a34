"""All that a hub does with packets: it writes those of its agreements, and takes the replicas'."""

from collections.abc import Callable, Mapping

from connectors.kafka.sink import UpdatesSink
from connectors.kafka.topics import ENVELOPE_BYTES
from streaming.config.config import Config
from streaming.config.packet_folders import packet_faults
from streaming.hub.batch.hub import Hub
from streaming.hub.packets.folders import LOG, PacketFolders
from streaming.hub.packets.importer import PacketImporter
from streaming.hub.packets.topic import FedReplica, FedTopic


def packet_folders(config: Config) -> PacketFolders:
    """The folders of a configuration; what is wrong with one is said, and it is tried again."""
    for fault in packet_faults(config):
        LOG.warning("%s", fault)
    named = {one.name: one.packets for one in config.agreements}
    return PacketFolders({name: folder for name, folder in named.items() if folder is not None})


def packet_importer(
    config: Config, options: Callable[[], Mapping[str, str]], hub: Callable[[], Hub]
) -> PacketImporter:
    """What takes the packets of a configuration's replicas; `options()`: [kafka.options] now."""
    bootstrap = config.kafka.bootstrap_servers
    fed = [
        FedReplica(name, config.replica(name).rid, one.name, config.changes_topic(name), folder)
        for name, one in config.by_packets.items()
        if (folder := one.packets) is not None
    ]
    return PacketImporter(
        {one.name: FedTopic(one, bootstrap, options) for one in fed},
        lambda: UpdatesSink(bootstrap, options()),
        lambda: hub().state,
        lambda: hub().ledger.last.offsets,
        config.limits.record_bytes + ENVELOPE_BYTES,
    )
