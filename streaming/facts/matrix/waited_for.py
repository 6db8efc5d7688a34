"""Who has not acknowledged a change yet, or all that the topics held at a moment."""

from collections.abc import Mapping
from dataclasses import dataclass

from checkpoints.reading.reader import Reader
from streaming.config.config import Config
from streaming.facts.consumers.lag import acked
from streaming.facts.consumers.ruvs import state_of
from streaming.facts.freshness import MAX_AGE_S, as_read, freshness, late_text
from streaming.facts.names import committed, serving


@dataclass(frozen=True, slots=True)
class WaitedFor:
    """What is still waited for; `by`: consumer -> its agreement's state.

    `hub`: what the hub itself has not done; None: it has. `doubt`: why nothing may move.
    """

    by: Mapping[str, str]
    hub: str | None = None
    doubt: str | None = None

    @property
    def is_over(self) -> bool:
        """Return whether all of it is everywhere."""
        return self.hub is None and not self.by


def waiting_for_change(config: Config, reader: Reader, csn: str, now_s: float) -> WaitedFor:
    """Who has not acknowledged the change of this CSN; whoever need not be sent it has it too."""
    found = reader.changelog({"csn": csn, "kind": "change"}, columns=["table"])
    doubt = doubt_of(reader, now_s)
    if not found.num_rows:
        return WaitedFor({}, f"the hub has not judged {csn}", doubt)
    table = found["table"][0].as_py()
    datasets = {one.name: one.dataset for one in config.tables}
    hub, by = committed(reader), dict[str, str]()
    for one in serving(config, reader).agreements:
        dataset, state = config.dataset_of(one), state_of(hub, one.name)
        known = acked(hub, state, config.replica(one.consumer).rid, dataset)
        has_it = state.session is not None and known.covers(csn)
        if dataset == datasets.get(table, dataset) and not has_it:
            by[one.consumer] = state.status_text
    return WaitedFor(by, None, doubt)


def waiting_for_epoch(config: Config, reader: Reader, hub_epoch: int, now_s: float) -> WaitedFor:
    """Who has not acknowledged everything up to this hub epoch."""
    hub = committed(reader)
    states = {one.consumer: state_of(hub, one.name) for one in serving(config, reader).agreements}
    by = {
        name: one.status_text
        for name, one in states.items()
        if one.session is None or one.acked_covers < hub_epoch
    }
    return WaitedFor(by, None, doubt_of(reader, now_s))


def unread_behind(reader: Reader, ends: Mapping[str, int]) -> list[str]:
    """The topics that the hub has not read up to these ends."""
    commit = as_read(reader).commit
    offsets = commit.offsets if commit else {}
    return [topic for topic, end in ends.items() if offsets.get(topic, 0) < end]


def doubt_of(reader: Reader, now_s: float) -> str | None:
    """Why nothing may move: no hub is running, or it is stuck; None: it may."""
    age = freshness(reader, now_s)
    return late_text(age) if age.is_stale(MAX_AGE_S) else None
