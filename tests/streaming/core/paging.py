"""A consumer that is sent to page by page, while its supplier's changelog grows."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from streaming.core.batch.sending import EpochMark, SendingView, plan
from streaming.core.conflict.judge import Judged, Verdict
from streaming.core.delivery.lack import Anchor, lack
from streaming.core.model.csn import rid_of
from streaming.core.model.row import Arrived, RowState
from streaming.core.model.ruv import Ruv
from streaming.core.model.statuses import AgreementStatus
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.state.agreement_state import AgreementState
from tests.harness.builders import change, csn
from tests.reference.lack import must_send
from tests.reference.sending import is_for
from tests.streaming.core.delivery.logs import RIDS, ruv_of
from tests.streaming.core.reload import Session, first_load, read, reload

CONSUMER = 9
"""The rid of a consumer that writes nothing."""


@dataclass(slots=True)
class Changelog:
    """A supplier's changelog and RUV; what is not above its replica's max is not taken."""

    ruv: Ruv = field(default_factory=Ruv)
    log: list[str] = field(default_factory=list)

    def receive(self, arriving: Iterable[str]) -> list[str]:
        """Insert what theorem 1 lets in."""
        taken = []
        for each in arriving:
            if not self.ruv.covers(each):
                self.ruv = self.ruv.with_csn(each)
                taken.append(each)
        self.log = sorted([*self.log, *taken])
        return taken


Csns = Sequence[str]


@dataclass(frozen=True, slots=True)
class Step:
    """What comes in between the copy of the RUV and the load of a page, and while it is processed.

    `size`: how many records the page has.
    """

    between: Csns
    during: Csns
    size: int


@dataclass(frozen=True, slots=True)
class Story:
    """A supplier, a consumer that may know of others more than it, and the pages' steps."""

    log: Csns
    consumer: Ruv
    steps: Sequence[Step]


arrivals = st.lists(st.builds(csn, st.integers(0, 30), st.sampled_from(RIDS)), max_size=4)
steps = st.builds(Step, arrivals, arrivals, st.integers(1, 4))


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Some replicas at first, new ones later, far below and above what was sent already."""
    first = draw(st.sets(st.sampled_from(RIDS)))
    numbers = st.sets(st.integers(0, 30), max_size=6)
    log = sorted(csn(number, rid) for rid in sorted(first) for number in draw(numbers))
    upto = {rid: draw(st.integers(-1, 30)) for rid in RIDS}
    has = [csn(number, rid) for rid, number in upto.items() if number >= 0 and draw(st.booleans())]
    return Story(log, ruv_of(has), draw(st.lists(steps, max_size=8)))


@dataclass(frozen=True, slots=True)
class Played:
    """A page as it went: the session at its load, what came in since, was read, and was sent."""

    loaded: Session
    received: Csns
    page: Csns
    sent: tuple[str, ...]


def play(story: Story, own: int | None = None) -> tuple[Changelog, list[Played]]:
    """Page by page while changes come in, then on until the session ends."""
    supplier = Changelog()
    supplier.receive(story.log)
    session: Session | None = None
    played: list[Played] = []
    quiet = [Step([], [], 3)] * 80
    for step in [*story.steps, *quiet]:
        ruv = supplier.ruv
        loaded = reload(session, ruv) if session else first_load(ruv, story.consumer, own)
        received = supplier.receive(step.between)
        page = behind(supplier.log, loaded.anchor)[: step.size]
        received += supplier.receive(step.during)
        session, sent = read(loaded, page)
        played.append(Played(loaded, received, page, sent))
    assert session is None or session.is_ended
    return supplier, played


def behind(log: Sequence[str], anchor: Anchor | None) -> list[str]:
    """The records from the anchor on."""
    if anchor is None:
        return []
    return list(log[(bisect_left if anchor.at else bisect_right)(log, anchor.csn) :])


def from_scratch(story: Story, size: int) -> list[str]:
    """What pages send that are calculated anew, each a number of changes to be sent."""
    supplier, consumer = Changelog(), story.consumer
    supplier.receive(story.log)
    sent: list[str] = []
    for step in [*story.steps, *[Step([], [], 1)] * 120]:
        lacking = lack(supplier.ruv, consumer)
        supplier.receive(step.between)
        rest = behind(supplier.log, lacking.anchor)
        supplier.receive(step.during)
        now = [c for c in rest if must_send(lacking, c)][:size]
        for each in now:
            consumer = consumer.with_csn(each)
        sent += now
    return sent


def in_hub_epochs(story: Story, covers: int, page_items: int) -> tuple[Ruv, list[str]]:
    """The RUV of a consumer that covers this hub epoch, and what the hub's pages send to it."""
    supplier, epochs = Changelog(), list[tuple[Ruv, Csns]]()

    def take(arriving: Csns) -> None:
        taken = supplier.receive(arriving)
        if taken:
            epochs.append((supplier.ruv, taken))

    for number in range(0, len(story.log), 3):
        take(story.log[number : number + 3])
    covers = min(covers, len(epochs))
    consumer = epochs[covers - 1][0] if covers else Ruv()
    agreement = AgreementState(
        "to-9",
        CONSUMER,
        AgreementStatus.CATCHING_UP,
        session="9-1",
        sent_covers=covers,
        sent_ruv=consumer,
        scanned=covers,
    )
    sent: list[str] = []

    def marks(after: int, to: int) -> list[EpochMark]:
        numbered = enumerate(epochs[after:to], after + 1)
        return [EpochMark(n, len(csns), {DEFAULT_DATASET: ruv}) for n, (ruv, csns) in numbered]

    for arriving in [*(a for step in story.steps for a in (step.between, step.during)), *[[]] * 40]:
        previous = len(epochs)
        take(arriving)
        now = {DEFAULT_DATASET: supplier.ruv}
        agreement, to_send, _ = plan(
            agreement,
            SendingView(previous, len(epochs), now, 0, nudged=False, marks=marks),
            DEFAULT_DATASET,
            has_items=len(epochs) > previous,
            page_items=page_items,
            covers_interval_ms=1_000,
        )
        if to_send is not None:
            page = [c for _, csns in epochs[to_send.after : to_send.to] for c in csns]
            sent += [c for c in page if is_for(accepted(c), CONSUMER, ["t"], to_send.known)]
    assert agreement.sent_ruv.max_csns() == supplier.ruv.max_csns()
    return consumer, sent


def accepted(text: str) -> Judged:
    """The changelog entry of this CSN."""
    one = change(0)._replace(csn=text, rid=rid_of(text))
    arrived = Arrived(one, "", "", 0, 0, 0, 0)
    return Judged(arrived, Verdict.ACCEPTED, None, 0, RowState(), RowState())
