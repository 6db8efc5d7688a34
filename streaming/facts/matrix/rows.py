"""The epoch number matrix: of each origin the number of the last change that is at each replica."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from checkpoints.reading.numbers import numbers_at
from checkpoints.reading.reader import Reader
from checkpoints.tables import TableName
from streaming.config.config import Config
from streaming.core.matrix.rows import NumberRange, Row, lacking
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.facts.consumers.ruvs import state_of
from streaming.facts.names import committed, names_of


class Word(StrEnum):
    """By what a row of the matrix is known."""

    OWN = "own"
    """the hub's own row, which is fact"""
    ESTIMATE = "estimate"
    """raised when something is sent: what the consumer will have if nothing is lost"""
    ACTUAL = "actual"
    """the consumer's own last word, its acknowledgement"""


@dataclass(frozen=True, slots=True)
class Origin:
    """A column of the matrix: an origin's name, and its id in the configuration or its rid."""

    name: str
    rid: int
    oid: str


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A row: `numbers` by origin's name, and the hub epoch at which the hub's own row was this.

    `agreement` None: the hub's own, or nothing is sent to this replica. `host`: as configured.
    `is_elsewhere`: it reads the updates of another hub, so this one knows of it only what was
    before.
    """

    replica: str
    host: str | None
    agreement: str | None
    word: Word
    hub_epoch: int
    numbers: Mapping[str, int]
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Matrix:
    """The rows, the hub's own first, and the columns, in one order in all rows."""

    hub: str
    origins: tuple[Origin, ...]
    rows: tuple[MatrixRow, ...]

    @property
    def own(self) -> MatrixRow:
        """The hub's own row."""
        return self.rows[0]

    def row_of(self, replica: str) -> MatrixRow | None:
        """The row of a replica, or of the consumer of this agreement."""
        named = (row for row in self.rows if replica in (row.replica, row.agreement))
        return next(named, None)

    def lacking(self, row: MatrixRow) -> dict[str, NumberRange]:
        """Origin's name -> the changes that are at the hub and, by this row, not there."""
        return lacking(self.own.numbers, row.numbers)


def matrix(config: Config, reader: Reader, word: Word = Word.ESTIMATE) -> Matrix:
    """The matrix as of the reader's commit; `word`: by what the rows of consumers are known.

    A row of which nothing was ever heard is all zeros.
    """
    hub = committed(reader)
    origins = _origins(config, hub.numbers)
    sent_to = {one.consumer: one.name for one in config.agreements}
    states = {one.name: state_of(hub, sent_to.get(one.name, "")) for one in config.replicas}
    rows = [
        MatrixRow(
            one.name,
            one.host,
            sent_to.get(one.name),
            word,
            *_row(reader, hub, states[one.name], one.rid, word, origins),
            is_elsewhere=states[one.name].is_elsewhere,
        )
        for one in config.replicas
    ]
    own = MatrixRow(
        config.hub.name, None, None, Word.OWN, hub.hub_epoch, _named(origins, hub.numbers)
    )
    return Matrix(config.hub.name, origins, (own, *rows))


def counted_row(hub: HubState, row: Row, rid: int) -> dict[int, int]:
    """The row of a consumer: it has all of its own that the hub has, whatever it was sent."""
    return {**row, rid: hub.numbers.get(rid, 0)}


def _row(
    reader: Reader,
    hub: HubState,
    agreement: AgreementState,
    rid: int,
    word: Word,
    origins: tuple[Origin, ...],
) -> tuple[int, dict[str, int]]:
    if agreement.session is None:
        return 0, _named(origins, {})
    hub_epoch = agreement.acked_covers if word is Word.ACTUAL else agreement.estimated
    numbers = hub.numbers
    if hub_epoch != hub.hub_epoch:
        numbers = numbers_at(reader.table(TableName.EPOCHS), hub_epoch).numbers
    return hub_epoch, _named(origins, counted_row(hub, numbers, rid))


def _named(origins: tuple[Origin, ...], row: Row) -> dict[str, int]:
    return {one.name: row.get(one.rid, 0) for one in origins}


def _origins(config: Config, numbers: Row) -> tuple[Origin, ...]:
    """The configured replicas, then the hub and whom the configuration does not name, by rid."""
    names = names_of(config)
    oids = {one.rid: one.oid for one in config.replicas}
    others = sorted(rid for rid, number in numbers.items() if rid not in oids and number)
    return tuple(
        Origin(names.get(rid, f"rid {rid}"), rid, oids.get(rid) or str(rid))
        for rid in (*oids, *others)
    )
