"""What becomes of one record of its updates topic (docs/protocol.md, The consumer's rules)."""

from dataclasses import dataclass, replace

from streaming.core.model.record import WIRE_VERSIONS, Applied, Hello, Item, Update
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv


@dataclass(frozen=True, slots=True)
class Position:
    """Where a consumer stands; all but the last three fields are stored with its rows.

    `last`: the hub epoch of the last batch it applied in this session, or the covers of its
    hello. `covers` and `ruv`: it is complete up to here. `epoch`: its own epoch when it stored
    them. `generation` 0: it knows none yet.
    """

    session: str | None = None
    last: int = 0
    covers: int = 0
    epoch: int = 0
    ruv: Ruv = NOTHING_KNOWN
    generation: int = 0
    heard: int = 0  # the highest generation for which it said hello
    answered: bool = False  # a record of this session came
    chunks: tuple[Update, ...] = ()  # the batch that is not whole yet, in order from chunk 0

    def greeting(self, session: str) -> "Position":
        """The position with which a new session starts."""
        return replace(self, session=session, last=self.covers, answered=False, chunks=())

    def hello(self, own: str | None, *, lost: bool) -> Hello:
        """The record that starts its session."""
        return Hello(self.epoch, self.covers, self.generation, self.ruv, own, lost, WIRE_VERSIONS)

    def applied(self) -> Applied:
        """The record that tells of the batch that was applied last."""
        return Applied(self.epoch, self.covers, self.generation, self.ruv)


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply these items in order, and store `position` with the epoch in which that was done."""

    position: Position
    hub_epoch: int
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Skip:
    """This was applied, or buffered, already."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """The batch is not whole yet; go on with `position`."""

    position: Position


@dataclass(frozen=True, slots=True)
class SayHello:
    """Something is missing, or the hub was restored: start a new session from `position`."""

    position: Position
    why: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Not meant for this session of this replica."""

    why: str


ReceiveOutcome = Apply | Skip | Buffer | SayHello | Drop


def receive(position: Position, update: Update) -> ReceiveOutcome:
    """What to do with the next record of the updates topic.

    A higher generation is taken over from the first record that answers a hello; heard of
    otherwise it asks for one hello, not for one a record.
    """
    if update.generation < position.generation:
        return Drop(f"generation {update.generation} is over, this is {position.generation}")
    ours = update.session == position.session
    heard = max(position.heard, position.generation)
    answers = ours and not position.answered
    if update.generation > (position.generation if ours else heard) and not answers:
        why = f"the hub is of generation {update.generation} now, not {position.generation}"
        return SayHello(replace(position, heard=max(heard, update.generation)), why)
    if not ours:
        return Drop(f"it answers session {update.session}, this is {position.session}")
    return _in_session(replace(position, generation=update.generation, answered=True), update)


def _in_session(position: Position, update: Update) -> ReceiveOutcome:
    if update.hub_epoch <= position.last:
        return Skip()
    if update.prev > position.last:
        why = f"batch {update.hub_epoch} follows {update.prev}, but {position.last} came last"
        return SayHello(position, why)
    return _assemble(position, update)


def _assemble(position: Position, update: Update) -> ReceiveOutcome:
    """Chunk 0 starts the batch afresh, whatever was there; it counts after the last chunk."""
    chunks = () if update.chunk == 0 else position.chunks
    if chunks and _batch(chunks[0]) == _batch(update) and update.chunk < len(chunks):
        return Skip()
    if update.chunk != len(chunks) or (chunks and _batch(chunks[0]) != _batch(update)):
        why = f"chunk {update.chunk} of batch {update.hub_epoch} came without those before it"
        return SayHello(position, why)
    chunks = (*chunks, update)
    if len(chunks) < update.chunks:
        return Buffer(replace(position, chunks=chunks))
    after = replace(
        position, last=update.hub_epoch, covers=update.covers, ruv=update.ruv, chunks=()
    )
    items = tuple(item for chunk in chunks for item in chunk.items)
    return Apply(after, update.hub_epoch, items)


def _batch(update: Update) -> tuple[int, int, int, int]:
    """What all chunks of one batch share."""
    return update.generation, update.hub_epoch, update.prev, update.chunks
