"""The points at which tests kill a hub: those of packets are reached by a hub that exports some."""

from checkpoints.commit.faults import FaultPoint

OF_PACKETS = (FaultPoint.AFTER_MARKERS, FaultPoint.BETWEEN_PACKETS)
OF_PURGES = (FaultPoint.BEFORE_PURGE, FaultPoint.AFTER_PURGE)
OF_TOPICS = tuple(one for one in FaultPoint if one not in (*OF_PACKETS, *OF_PURGES))
"""Those that every hub reaches."""
