"""What a replica had applied when it wrote: its sessions, their reflections, and the MRE."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Session:
    """One session of a replica, and what it has reflected so far.

    `epochs` and `covers` are one step function: both rise strictly; in epoch `epochs[i]` the
    replica had applied everything up to hub epoch `covers[i]`. The first step is the hello's.
    """

    id: str
    hello_epoch: int
    epochs: tuple[int, ...]
    covers: tuple[int, ...]

    def reflected(self, epoch: int, *, same: bool = False) -> int:
        """The largest covers of epochs below this one; with `same`, of this one too."""
        place = (bisect_right if same else bisect_left)(self.epochs, epoch)
        return self.covers[place - 1] if place else 0

    @property
    def mre(self) -> int:
        """The largest covers reflected in this session, whatever the epoch of a change."""
        return self.covers[-1]


def new_session(session_id: str, epoch: int, covers: int) -> Session:
    """Return the session that a hello starts. The hello is its first reflection."""
    return Session(session_id, epoch, (epoch,), (covers,))


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
