"""What the hub's log says at info: what it serves, what changes state, and a line a minute."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streaming.core.batch.counters import FUNCTION
from streaming.core.counts.counter_keys import CountKey, Counts, of_replicas
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.text.wording import as_count

LOG = logging.getLogger("slackwater")

SUMMARY_S = 60.0
NOTICE_S = 10.0
"""The shortest time between two notices of one kind: a flood of bad records is one line in it."""

_NOTICES = {
    "quarantined": ("record", "quarantined, see `slackwater quarantine list`"),
    "refused": (
        "item",
        "refused by a replica's database, see `slackwater conflicts list --kind refused`",
    ),
}
"""Count of a batch -> what it counts, and what is said of it."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """A replica or agreement that got another state; `is_stopped`: a person is needed.

    `of`: which one, by the name of its field in the log.
    """

    text: str
    is_stopped: bool
    of: tuple[str, str]


def state_changes(
    before: HubState, after: HubState, names: Mapping[int, str]
) -> Iterator[StateChange]:
    """Yield what got another state from one batch to the next."""
    for rid, replica in after.replicas.items():
        known = before.replicas.get(rid)
        was = known.status_text if known else ReplicaStatus.SILENT.value
        if was != replica.status_text:
            named = str(names.get(rid, rid))
            text = f"replica {named}: {was} -> {replica.status_text}"
            yield StateChange(text, replica.is_stopped, ("replica", named))
    for name, agreement in after.agreements.items():
        earlier = before.agreements.get(name)
        was = earlier.status_text if earlier else AgreementStatus.WAITING_FOR_HELLO.value
        if was != agreement.status_text:
            text = f"agreement {name}: {was} -> {agreement.status_text}"
            yield StateChange(text, agreement.is_stopped, ("agreement", name))


def ready_text(state: HubState, names: Mapping[int, str], bootstrap: str) -> str:
    """Say what a hub that is ready serves, and in what state."""
    replicas = (
        f"{names[r]} ({one.status_text})" for r, one in state.replicas.items() if r in names
    )
    agreements = (f"{one.name} ({one.status_text})" for one in _serving(state))
    return (
        f"ready at hub epoch {state.hub_epoch}, Kafka at {bootstrap};"
        f" reads {', '.join(replicas) or 'nobody'};"
        f" sends to {', '.join(agreements) or 'nobody'}"
    )


def summary_text(batches: int, counts: Counts, state: HubState, unread: int) -> str:
    """Sum up the batches since the last summary, and say who lags."""
    done = ", ".join(
        (
            as_count(batches, "batch", "batches"),
            as_count(counts.get("judged", 0), "change"),
            as_count(_conflicts(counts), "conflict"),
            f"{counts.get('quarantined', 0)} quarantined",
        )
    )
    lags = {
        one.name: state.hub_epoch - one.acked_covers
        for one in _serving(state)
        if one.acked_covers < state.hub_epoch
    }
    lag = ", ".join(f"{name} {as_count(n, 'hub epoch')}" for name, n in lags.items()) or "none"
    return f"last minute: {done}; lag: {lag}; {as_count(unread, 'record')} unread"


def _serving(state: HubState) -> list[AgreementState]:
    """The agreements that are configured."""
    known = state.agreements.values()
    return [one for one in known if one.status is not AgreementStatus.RETIRED]


def _conflicts(counts: Counts) -> int:
    found = of_replicas(counts).items()
    return sum(count for of, count in found if of.name.startswith(FUNCTION))


@dataclass(slots=True)
class HubReport:
    """Writes the hub's log; `names`: rid -> name of the configured replicas."""

    names: Mapping[int, str]
    clock_s: Callable[[], float] = time.monotonic
    batches: int = 0
    counts: Counter[CountKey] = field(default_factory=Counter)
    noticed: Counter[str] = field(default_factory=Counter)
    notice_due_s: dict[str, float] = field(default_factory=dict)
    summary_due_s: float = 0.0

    def ready(self, state: HubState, bootstrap: str) -> None:
        """Say that the hub is ready; the first minute begins."""
        self.summary_due_s = self.clock_s() + SUMMARY_S
        LOG.info("%s", ready_text(state, self.names, bootstrap))

    def batch(self, before: HubState, after: HubState, counts: Counts) -> None:
        """Say what a committed batch changed, and count the rest."""
        self.batches += 1
        self.counts.update(counts)
        self.noticed.update({name: counts.get(name, 0) for name in _NOTICES})
        for change in state_changes(before, after, self.names):
            level = logging.WARNING if change.is_stopped else logging.INFO
            LOG.log(level, "%s", change.text, extra=dict([change.of]))
        if after.hub_epoch > before.hub_epoch:
            judged = as_count(counts.get("judged", 0), "change")
            LOG.debug("hub epoch %d, batch %d: %s", after.hub_epoch, after.batch, judged)

    def sent_again(self, topics: Sequence[str]) -> None:
        """Say which updates topics were deleted."""
        for topic in topics:
            LOG.warning(
                "%s was deleted and created again: what its consumer has not acknowledged is sent"
                " again",
                topic,
            )

    def tick(self, state: HubState, unread: int) -> None:
        """Say what is due by the clock."""
        now_s = self.clock_s()
        for name, (noun, what) in _NOTICES.items():
            count = self.noticed[name]
            if count and now_s >= self.notice_due_s.get(name, 0.0):
                LOG.warning("%s %s", as_count(count, noun), what)
                self.noticed[name], self.notice_due_s[name] = 0, now_s + NOTICE_S
        if now_s >= self.summary_due_s:
            LOG.info("%s", summary_text(self.batches, self.counts, state, unread))
            self.batches, self.counts = 0, Counter()
            self.summary_due_s = now_s + SUMMARY_S
