"""Which changes that wait in quarantine for a column go on now (docs/protocol.md, section 4.4).

A column that the configuration does not have keeps a change in quarantine. Once it has the column,
the hub releases the change by itself, to be judged by what its replica had seen when it wrote.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from streaming.core.model.change import RowKey
from streaming.core.state.pending import Context


@dataclass(frozen=True, slots=True)
class WaitingChange:
    """A change in quarantine as `column`; `context`: its transaction.

    `batch`, `offset`: its place. `mre`: by which it is judged. `is_valid`: under the present
    configuration nothing is wrong with it. `is_overwritten`: its replica has written the row anew,
    or was sent it. `is_contended`: somebody else wrote the row, and its replica had not seen that.
    """

    id: str
    rid: int
    batch: int
    offset: int
    context: Context
    row: RowKey
    mre: int
    is_valid: bool = True
    is_overwritten: bool = False
    is_contended: bool = False

    @property
    def place(self) -> tuple[int, int, int]:
        """By which they go on: those of a replica in the order of its topic."""
        return self.batch, self.rid, self.offset


def going_on(
    waiting: Iterable[WaitingChange], committed: Collection[Context], most: int
) -> list[WaitingChange]:
    """Those that go on now, in order; about `most` of them, each transaction whole.

    `committed`: the transactions whose commit has come; a change without one is its own. A
    transaction stays if one of its changes is not valid yet. So does one of whose rows a newer
    change of the same replica stays, for that is what its database holds; and one of whose rows
    is contended, or another replica's change goes on first: all of them are the hub's, so nobody
    would find the two concurrent. What is overwritten stays alone: its row holds more.
    """
    known = sorted(waiting, key=lambda one: one.place)
    live = [one for one in known if not one.is_overwritten]
    held = {one.context for one in known if not one.is_valid}
    held |= {one.context for one in live if one.context not in committed or one.is_contended}
    before = -1
    while before != len(held):
        before = len(held)
        held |= _below(live, held) | _contended(live, held)
    return _first([one for one in live if one.context not in held], most)


def _below(live: Sequence[WaitingChange], held: Collection[Context]) -> set[Context]:
    """The transactions with a row of which a newer change of the same replica is held."""
    found, rows = set[Context](), set[tuple[int, RowKey]]()
    for one in reversed(live):
        if (one.rid, one.row) in rows:
            found.add(one.context)
        if one.context in held:
            rows.add((one.rid, one.row))
    return found


def _contended(live: Sequence[WaitingChange], held: Collection[Context]) -> set[Context]:
    """The transactions with a row of which another replica's change goes on first."""
    first = dict[RowKey, int]()
    going = [one for one in live if one.context not in held]
    return {one.context for one in going if first.setdefault(one.row, one.rid) != one.rid}


def _first(going: Sequence[WaitingChange], most: int) -> list[WaitingChange]:
    """The first `most`, and what else is of their transactions."""
    contexts = {one.context for one in going[:most]}
    return [one for one in going if one.context in contexts]
