"""What a replica had applied when it wrote: its sessions, their reflections, and the MRE."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TypeVar

from streaming.core.model.ruv import Ruv

KEPT_STEPS = 32
"""How many steps of a session of another hub's agreement are kept between two batches."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Session:
    """One session of a replica, and what it has reflected so far.

    `epochs` and `covers` are one step function: both rise strictly; in epoch `epochs[i]` the
    replica had applied everything up to hub epoch `covers[i]`. The first step is the hello's.
    `agreement`: the one of another hub whose updates it reads; empty: this hub's. `elsewhere`: what
    such a session has reflected of the other hub: (epoch, RUV) by epoch; its hub epochs are no
    numbers of this one. `judged`: (hub epoch of this hub, the replica's largest CSN that was judged
    by then). `hub_epoch`: of the batch that took the hello, if a session before it was of another
    hub; else 0.
    """

    id: str
    hello_epoch: int
    epochs: tuple[int, ...]
    covers: tuple[int, ...]
    agreement: str = ""
    hub_epoch: int = 0
    elsewhere: tuple[tuple[int, Ruv], ...] = ()
    judged: tuple[tuple[int, str], ...] = ()

    def reflected(self, epoch: int, *, same: bool = False) -> int:
        """The largest covers of epochs below this one; with `same`, of this one too."""
        place = (bisect_right if same else bisect_left)(self.epochs, epoch)
        return self.covers[place - 1] if place else 0

    @property
    def mre(self) -> int:
        """The largest covers reflected in this session, whatever the epoch of a change."""
        return self.covers[-1]

    @property
    def is_elsewhere(self) -> bool:
        """Return whether another hub answers it."""
        return bool(self.agreement)

    def seen_elsewhere(self, epoch: int) -> Ruv | None:
        """What it had applied of another hub in epochs below this one; None: nobody knows."""
        place = bisect_left(self.elsewhere, epoch, key=lambda step: step[0])
        return self.elsewhere[place - 1][1] if place else None

    def answered_elsewhere(self, csn: str) -> int:
        """The hub epoch up to which another hub has answered all that this one judged of it.

        `csn`: the replica's largest one that the other hub had judged.
        """
        return max((hub_epoch for hub_epoch, judged in self.judged if judged <= csn), default=0)

    def judged_up_to(self, hub_epoch: int, csn: str) -> "Session":
        """The session of another hub's agreement after a batch, with a bounded number of steps.

        Half of the older ones go: what it has seen is taken for less, which is safe.
        """
        is_same = bool(self.judged) and self.judged[-1][1] == csn
        steps = (*(self.judged[:-1] if is_same else self.judged), (hub_epoch, csn))
        return replace(self, elsewhere=_thinned(self.elsewhere), judged=_thinned(steps))


def _thinned(steps: tuple[T, ...]) -> tuple[T, ...]:
    while len(steps) > KEPT_STEPS:
        half = len(steps) // 2
        steps = steps[:half:2] + steps[half:]
    return steps


def new_session(session_id: str, epoch: int, covers: int) -> Session:
    """Return the session that a hello starts. The hello is its first reflection."""
    return Session(session_id, epoch, (epoch,), (covers,))


def reflect_elsewhere(session: Session, epoch: int, ruv: Ruv) -> Session:
    """The session of another hub after an `applied`: in this epoch it had applied that RUV.

    A hub that was restored sends a smaller one than before, and that is what its consumer has.
    """
    steps = session.elsewhere
    if steps and epoch <= steps[-1][0]:
        return session
    return replace(session, elsewhere=(*steps, (epoch, ruv)))


def reflect(session: Session, epoch: int, covers: int, limit: int) -> Session:
    """The session after `applied`; beyond `limit` steps half of the older ones go.

    A dropped step can make the MRE of an old epoch smaller, never larger, which is safe.
    """
    if covers <= session.reflected(epoch, same=True):
        return session
    steps = [
        (e, c)
        for e, c in zip(session.epochs, session.covers, strict=True)
        if e < epoch or c > covers
    ]
    steps.append((epoch, covers))
    steps.sort()
    if len(steps) > limit:
        half = len(steps) // 2
        steps = steps[:half:2] + steps[half:]
    return replace(session, epochs=tuple(e for e, _ in steps), covers=tuple(c for _, c in steps))


def judging(sessions: tuple[Session, ...], epoch: int) -> Session | None:
    """Return the session by which a change of this epoch is judged; the newest is the current one.

    A change after the hello with an epoch before it (the rest of a journal) is judged by the
    session before (docs/traps.md, A hello counts for changes written before it).
    """
    for session in reversed(sessions):
        if epoch > session.hello_epoch:
            return session
    return None


def mre(sessions: tuple[Session, ...], epoch: int) -> int:
    """Return the max replicated epoch of a change that follows all these reflections."""
    session = judging(sessions, epoch)
    return session.reflected(epoch) if session else 0


def mre_same(sessions: tuple[Session, ...], epoch: int) -> int:
    """Return the MRE as if reflections of the change's own epoch counted too."""
    for session in reversed(sessions):
        if epoch >= session.hello_epoch:
            return session.reflected(epoch, same=True)
    return 0
