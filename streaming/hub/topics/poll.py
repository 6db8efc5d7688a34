"""Polls the topics' ends beside the batches, and records each poll that Kafka answered."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from checkpoints.commit.last_poll import (
    READ_NOTHING,
    LastPoll,
    ReadAtRest,
    moves_since,
    note_away,
    read_poll,
    write_poll,
)
from connectors.kafka.client_errors import fault_of, refused_text
from streaming.core.access.root import StateRoot
from streaming.core.intake.input_lost import TopicFacts, unreadable
from streaming.core.model.errors import SourceError
from streaming.hub.topics.topic_look import TopicLook
from streaming.hub.topics.usable import refusal

LOG = logging.getLogger("slackwater")

EVERY_S = 2.0
CONNECT_MS = 5_000
UNKNOWN_EVERY_S = 60.0
"""How often all topics of the broker are listed, to find those of no replica."""
SEEN_MS = 60_000
"""How long another hub counts after its poll."""
MISSED_S = 60.0
"""How long ago Kafka may have been missed for a failure to be of that."""
JOIN_S = 1.0
"""How long the end of the hub waits for a poll in progress; its thread keeps no process alive."""


@dataclass(slots=True)
class TopicPoll:
    """A thread that asks Kafka for the ends of the hub's topics every few seconds.

    The time in the state root moves only when Kafka has answered: so its age is the time since the
    hub and its broker were both there. `topics`: the changes topics. `others`: the updates
    topics. `facts`: what the last poll found. `others_ms`: other hubs that polled for this state
    since, and when they last did. `broker`: its address, for people. `principal`: whom it takes the
    hub for. `asked_s`: since when an answer is waited for. `at_rest`: what the hub has read and not
    committed. `packets`: what does not come through by packets. `early`: whether to poll at once,
    for those who look. `prefix`: of changes topics; `no_others`: those with it that are of no
    replica's and known all the same. `unknown`: the others with it, as they were listed last.
    A missing topic is created again at once: who reads it elsewhere then fails soon, and would wait
    for minutes otherwise.
    """

    root: StateRoot
    hub: str
    look: TopicLook
    topics: Sequence[str]
    others: Sequence[str]
    facts: Mapping[str, TopicFacts] = field(default_factory=dict)
    at_rest: Callable[[], ReadAtRest] = lambda: READ_NOTHING
    packets: Callable[[], Mapping[str, str]] = dict
    prefix: str = ""
    no_others: Collection[str] = ()
    unknown: tuple[str, ...] = ()
    stopped: threading.Event = field(default_factory=threading.Event)
    early: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    broker: str = ""
    principal: str = ""
    failing_since_s: float | None = None
    failed_s: float = float("-inf")
    asked_s: float | None = None
    ended: bool = True
    began_ms: int = 0
    others_ms: dict[str, int] = field(default_factory=dict)
    _listed_s: float = float("-inf")

    def start(self) -> None:
        """Start polling."""
        self.thread = threading.Thread(target=self._run, name="topic poll", daemon=True)
        self.thread.start()

    def stop(self, *, ended: bool = True) -> None:
        """Stop polling; `ended`: with the hub, which says so."""
        self.ended = ended
        self.stopped.set()
        self.early.set()
        if self.thread is not None:
            self.thread.join(JOIN_S)

    def _run(self) -> None:
        while not self.stopped.is_set():
            self._poll()
            self.early.wait(EVERY_S)
            self.early.clear()
        if self.ended:
            self._record(ended=True)
        self.look.close()

    def _poll(self) -> None:
        self.asked_s = time.monotonic()
        try:
            facts = self.look.look_once([*self.topics, *self.others])
            self._list_unknown()
        except SourceError as error:
            self._failed(error)
            return
        finally:
            self.asked_s = None
        self._answered()
        self.facts = facts
        self._record()

    def _list_unknown(self) -> None:
        """List the topics under the prefix that nobody reads, and say which are new among them."""
        now_s = time.monotonic()
        if not self.prefix or now_s - self._listed_s < UNKNOWN_EVERY_S:
            return
        self._listed_s, before = now_s, self.unknown
        known = {*self.topics, *self.others, *self.no_others}
        found = self.look.beginning_with(self.prefix)
        self.unknown = tuple(name for name in found if name not in known)
        for name in self.unknown:
            if name not in before:
                LOG.warning("%s is the topic of no configured replica: it is not read", name)

    @property
    def ends(self) -> dict[str, int]:
        """Changes topic -> where it ended at the last poll, of those that may be read."""
        found = {topic: self.facts[topic] for topic in self.topics if topic in self.facts}
        return {topic: one.end for topic, one in found.items() if one.is_readable}

    @property
    def unreadable(self) -> frozenset[str]:
        """The changes topics that may not be read, as of the last poll."""
        return unreadable(self.facts) & {*self.topics}

    @property
    def refusals(self) -> dict[str, str]:
        """Changes topic that may not be read -> what Kafka refuses, and whom."""
        return {topic: refusal(topic, self.principal) for topic in self.unreadable}

    def with_more(self, read: Mapping[str, int]) -> set[str]:
        """The changes topics that may hold records behind these offsets, as of the last poll.

        While Kafka does not answer any of them may.
        """
        if not self.facts or self.failing_since_s is not None:
            return set(self.topics)
        return {topic for topic, end in self.ends.items() if end > read.get(topic, 0)}

    @property
    def is_unanswered(self) -> bool:
        """Return whether Kafka does not answer, or takes longer than any answer does."""
        asked_s = self.asked_s
        is_slow = asked_s is not None and time.monotonic() - asked_s > CONNECT_MS / 1_000
        return is_slow or self.failing_since_s is not None

    @property
    def has_missed(self) -> bool:
        """Return whether Kafka does not answer, or did not a moment ago."""
        return self.is_unanswered or time.monotonic() - self.failed_s < MISSED_S

    def hubs_seen(self) -> int:
        """How many hubs polled for this state lately, this one included."""
        now_ms = time.time_ns() // 1_000_000
        return 1 + sum(now_ms - at_ms < SEEN_MS for at_ms in [*self.others_ms.values()])

    def _look_for_others(self, found: LastPoll | None, at_ms: int) -> None:
        """Note another hub's poll; a hub that was killed before this one began is no other."""
        self.began_ms = self.began_ms or at_ms
        if found and found.hub != self.hub and not found.ended and found.at_ms > self.began_ms:
            self.others_ms[found.hub] = found.at_ms

    def _record(self, *, ended: bool = False) -> None:
        try:
            at_ms = time.time_ns() // 1_000_000
            before, ends = read_poll(self.root), self.ends
            self._look_for_others(before, at_ms)
            moves = moves_since(before, ends, at_ms)
            found = LastPoll(self.hub, at_ms, ends, ended, moves, at_rest=self.at_rest())
            found = replace(found, unreadable=self.refusals, packets=self.packets())
            found = replace(found, unknown=self.unknown)
            write_poll(self.root, found)
        except OSError as error:  # the file grows old, and `level` says so
            LOG.warning("the last poll is not recorded: %s", error)

    def _failed(self, error: SourceError) -> None:
        self.failed_s = time.monotonic()
        if self.failing_since_s is None:
            self.failing_since_s = self.failed_s
            LOG.warning("no answer from Kafka, the hub retries: %s", error)
        if self.broker:
            away_s = self.failed_s - self.failing_since_s
            fault = fault_of(str(error))
            why = refused_text(fault, self.principal, "the hub") if fault else ""
            note_away(self.root, time.time() - away_s, self.broker, why)

    def _answered(self) -> None:
        if self.failing_since_s is not None:
            LOG.info("Kafka answers again after %.0f s", time.monotonic() - self.failing_since_s)
        self.failing_since_s = None
