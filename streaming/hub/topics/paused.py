"""Whose topics a hub does not read for now, because their replicas have too much open."""

import logging
from collections.abc import Mapping

from streaming.core.text.wording import as_count

LOG = logging.getLogger("slackwater")


class PausedTopics:
    """The replicas whose topics are paused, and a line in the log when that changes.

    `topics`: changes topic -> rid. `limit`: limits.open_transactions.
    """

    def __init__(self, topics: Mapping[str, int], limit: int) -> None:
        self._names = {rid: topic for topic, rid in topics.items()}
        self._limit = limit
        self.rids: frozenset[int] = frozenset()

    def note(self, paused: Mapping[int, int]) -> frozenset[int]:
        """Note who is paused now (rid -> its open transactions), and return the rids."""
        for rid in paused.keys() - self.rids:
            LOG.warning(
                "%s is paused: its replica has %s, limits.open_transactions is"
                " %d; end the oldest (`slackwater status` names it, `slackwater abort` ends it) or"
                " start the hub with a larger limit",
                self._names[rid],
                as_count(paused[rid], "open transaction"),
                self._limit,
            )
        for rid in self.rids - paused.keys():
            LOG.info("%s is no longer paused", self._names[rid])
        self.rids = frozenset(paused)
        return self.rids
