"""What a consumer does with an updates record (docs/protocol.md, The consumer's rules)."""

from dataclasses import dataclass, replace

from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.records.record import (
    WIRE_VERSIONS,
    Applied,
    Hello,
    Item,
    PacketMarker,
    RangeItem,
    Stopped,
    Update,
)


@dataclass(frozen=True, slots=True)
class Position:
    """A consumer's position; all but the last three fields are stored with its rows.

    `last`: the hub epoch of the last batch that it applied in this session, or the covers of its
    hello. `covers`, `ruv`: it has applied everything up to here. `epoch`: its own epoch when it
    stored them. `generation`: the hub's; 0: not known yet. `reached`: the hub epoch that it applied
    last, in any session: in a resync it is above `covers`, and `last` goes back with a new session.
    `agreement`: the one that brought it all; empty: nobody knows.
    """

    session: str | None = None
    last: int = 0
    covers: int = 0
    epoch: int = 0
    ruv: Ruv = NOTHING_KNOWN
    generation: int = 0
    reached: int = 0
    agreement: str = ""
    seen_generation: int = 0  # the highest generation for which it sent a hello
    answered: bool = False  # a record of this session was received
    chunks: tuple[Update, ...] = ()  # of the incomplete batch, from chunk 0 on

    def in_session(self, session: str) -> "Position":
        """Return the position with which a new session starts."""
        return replace(self, session=session, last=self.covers, answered=False, chunks=())

    def is_of_another(self, agreement: str | None) -> bool:
        """Return whether another agreement than this one brought it, as far as anybody knows."""
        return agreement is not None and self.agreement not in ("", agreement)

    def moved(self, agreement: str | None) -> "Position":
        """Return the position from which a replica goes on that reads this agreement's updates.

        Another agreement may be another hub's, whose hub epochs are no numbers of the one before:
        of the position its RUV is left. None: nothing is sent to it.
        """
        if not self.agreement:
            return replace(self, agreement=agreement or "")
        if not (self.is_of_another(agreement) and self.generation):  # or it was moved before
            return self
        return Position(self.session, epoch=self.epoch, ruv=self.ruv, agreement=self.agreement)

    def hello(self, own: str | None, *, lost: bool, agreement: str | None = None) -> Hello:
        """Return the record that starts the session; `agreement`: whose updates it reads."""
        return Hello(
            self.epoch,
            self.covers,
            self.generation,
            self.ruv,
            own,
            lost,
            WIRE_VERSIONS,
            reached=self.reached,
            agreement=agreement,
            ruv_of=self.agreement if self.is_of_another(agreement) else None,
        )

    def applied(self) -> Applied:
        """Return the record that acknowledges the last batch that was applied."""
        return Applied(self.epoch, self.covers, self.generation, self.ruv, self.reached)


@dataclass(frozen=True, slots=True)
class ApplyBatch:
    """Apply these items in order, and store `position` with the epoch in which they are applied."""

    position: Position
    hub_epoch: int
    items: tuple[Item | RangeItem, ...]

    @property
    def rows(self) -> list[Item]:
        """The items of single rows."""
        return [item for item in self.items if isinstance(item, Item)]


@dataclass(frozen=True, slots=True)
class SkipRecord:
    """Ignore the record: it was applied or buffered already."""


@dataclass(frozen=True, slots=True)
class BufferChunk:
    """Wait for the other chunks of the batch; continue from `position`."""

    position: Position


@dataclass(frozen=True, slots=True)
class SendHello:
    """Start a new session from `position`: a record is missing, or the hub was restored."""

    position: Position
    why: str


@dataclass(frozen=True, slots=True)
class DropRecord:
    """Ignore the record: it belongs to another session or an old generation."""

    why: str


@dataclass(frozen=True, slots=True)
class EndAgent:
    """End with this reason: the hub stopped the replica, and only an operator can go on."""

    why: str


ReceiveOutcome = ApplyBatch | SkipRecord | BufferChunk | SendHello | DropRecord | EndAgent


def receive(position: Position, update: Update | Stopped | PacketMarker) -> ReceiveOutcome:
    """Decide what to do with the next record of the updates topic, or of a packet.

    The note of a packet is skipped: who reads the topic does not need it.
    A higher generation is adopted from the first record that answers a hello. In any other record
    it causes one hello, however many such records are received.
    """
    if isinstance(update, PacketMarker):
        return SkipRecord()
    if isinstance(update, Stopped):
        return _stopped(position, update)
    if update.generation < position.generation:
        return DropRecord(f"generation {update.generation} is over, this is {position.generation}")
    ours = update.session == position.session
    seen_generation = max(position.seen_generation, position.generation)
    answers = ours and not position.answered
    if update.generation > (position.generation if ours else seen_generation) and not answers:
        why = f"the hub is of generation {update.generation} now, not {position.generation}"
        return SendHello(
            replace(position, seen_generation=max(seen_generation, update.generation)), why
        )
    if not ours and _is_overtaken(position, update):
        return EndAgent(
            f"the hub answers session {update.session} now, not {position.session}: another agent"
            " runs under the name of this replica, perhaps on a copy of its database; stop the"
            " wrong one, then start this one again: it publishes again what the hub did not take"
        )
    if not ours:
        return DropRecord(f"it answers session {update.session}, this is {position.session}")
    return _in_session(replace(position, generation=update.generation, answered=True), update)


def _is_overtaken(position: Position, update: Update) -> bool:
    """Return whether a session that started later was answered, by a batch that never came here.

    A batch of an earlier session may stand in the topic again; its hub epoch came before.
    """
    newest = position.chunks[0].hub_epoch if position.chunks else position.last
    return position.answered and update.hub_epoch > newest


def _stopped(position: Position, stopped: Stopped) -> ReceiveOutcome:
    """An answer to an earlier session says nothing: that of this one follows."""
    if stopped.session != position.session:
        return DropRecord(f"it answers session {stopped.session}, this is {position.session}")
    return EndAgent(f"the hub stopped this replica ({stopped.state}): {stopped.remedy}")


def _in_session(position: Position, update: Update) -> ReceiveOutcome:
    if update.hub_epoch <= position.last:
        return SkipRecord()
    if update.prev > position.last:
        why = f"batch {update.hub_epoch} follows {update.prev}, but {position.last} came last"
        return SendHello(position, why)
    return _assemble(position, update)


def _assemble(position: Position, update: Update) -> ReceiveOutcome:
    """Buffer a chunk; chunk 0 restarts its batch, the last chunk completes it."""
    chunks = () if update.chunk == 0 else position.chunks
    if chunks and _batch(chunks[0]) == _batch(update) and update.chunk < len(chunks):
        return SkipRecord()
    if update.chunk != len(chunks) or (chunks and _batch(chunks[0]) != _batch(update)):
        why = f"chunk {update.chunk} of batch {update.hub_epoch} came without those before it"
        return SendHello(position, why)
    chunks = (*chunks, update)
    if len(chunks) < update.chunks:
        return BufferChunk(replace(position, chunks=chunks))
    after = replace(
        position,
        last=update.hub_epoch,
        covers=update.covers,
        ruv=update.ruv,
        reached=update.hub_epoch,
        agreement=update.agreement,
        chunks=(),
    )
    items = tuple(item for chunk in chunks for item in chunk.items_behind(position.last))
    return ApplyBatch(after, update.hub_epoch, items)


def _batch(update: Update) -> tuple[int, int, int, int]:
    """What all chunks of one batch share."""
    return update.generation, update.hub_epoch, update.prev, update.chunks
