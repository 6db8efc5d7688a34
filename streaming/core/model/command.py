"""Operator commands: the CLI appends them, the hub carries them out."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from streaming.core.model.change import Op


class CommandName(StrEnum):
    """The commands, each with what its argument names."""

    LEVEL = "level"
    """send every consumer its covers at once; no argument"""
    RELEASE = "release"
    """make a quarantined record a change of the hub; its id"""
    DROP = "drop"
    """drop a quarantined record; its id"""
    ACCEPT = "accept"
    """close a conflict as it was decided; its id"""
    OVERRIDE = "override"
    """let the loser of a conflict win, by a change of the hub; the conflict's id"""
    RETRY = "retry"
    """send refused rows again; the id of one conflict, `r<rid>-<offset>`, or all of `r<rid>`"""
    ABORT = "abort"
    """end an open transaction; its primary CSN or that of a member"""
    RECOVER = "recover"
    """give up the lost input of a replica; its rid"""
    RECOVER_HUB = "recover_hub"
    """go on from a state that was restored; "lose": though a topic begins above what was read.
    A hub does it when it starts, before any batch"""
    RESUME = "resume"
    """send to an agreement again that stopped at a refused row; its name"""
    PAUSE_TABLES = "pause_tables"
    """send nothing more of some tables of an agreement; a TablesOrder as text"""
    RESUME_TABLES = "resume_tables"
    """send some tables of an agreement again, whole; a TablesOrder as text"""
    SEND_NOW = "send_now"
    """let go at once what waits by the delay of an agreement; its name"""
    RETIRE = "retire"
    """take a replica out for good; its rid"""
    READMIT = "readmit"
    """let a new replica have the rid of one that was taken out; a ReadmitOrder as text"""
    RESYNC = "resync"
    """bring a consumer what it lacks as rows; a ResyncOrder as text"""
    PAUSE = "pause"
    """send nothing more to a consumer; the name of its agreement"""
    CHEPOCH = "chepoch"
    """set the row of a consumer in the matrix, from which it is sent to; a RowOrder as text"""
    EXPORT = "export"
    """export a packet at once; the name of an agreement whose consumer is sent packets"""
    REPAIR = "repair"
    """send the hub's row to a replica that has it otherwise; a RowRepair as text"""
    PREFER = "prefer"
    """let a replica's row stand for everybody, by a change of the hub; a RowRepair as text"""
    UNDO = "undo"
    """write rows as they stood back, by a transaction of the hub; an UndoOrder as text"""
    PIN = "pin"
    """keep the state of a hub epoch readable; a Pin (core/replay/pins.py) as text"""
    UNPIN = "unpin"
    """end that; the pin's name"""
    ACCEPT_LOCAL = "accept_local"
    """leave rows as they were written at one replica only; an AcceptedWrites as text"""

    @property
    def may_change_rows(self) -> bool:
        """Return whether a replica may lack something until it is carried out.

        A resync is not among them: its consumer is known to lack rows (facts/consumers/resync.py).
        """
        return self in _OF_ROWS


_OF_ROWS = frozenset(
    {
        *(CommandName.RELEASE, CommandName.DROP, CommandName.OVERRIDE, CommandName.RETRY),
        *(CommandName.ABORT, CommandName.RECOVER, CommandName.RECOVER_HUB),
        *(CommandName.CHEPOCH, CommandName.REPAIR, CommandName.PREFER, CommandName.UNDO),
    }
)


APP_CHARS = 100
"""No name of an application is longer (docs/wire.md, change)."""


def app_of(what: str, who: str) -> str:
    """What the hub's changes name as their application when somebody ordered them."""
    return f"{what}: {who}"[:APP_CHARS]


@dataclass(frozen=True, slots=True)
class ReadmitOrder:
    """The rid that a new replica gets, and the offset in its topic from which it is read."""

    rid: int
    offset: int

    def text(self) -> str:
        """The order as the argument of a command."""
        return json.dumps([self.rid, self.offset])


def parse_readmit_order(text: str) -> ReadmitOrder:
    """Parse the argument of a command that `ReadmitOrder.text` made."""
    rid, offset = json.loads(text)
    return ReadmitOrder(rid, offset)


@dataclass(frozen=True, slots=True)
class ResyncOrder:
    """What an operator orders: `is_full`: all rows of all tables; `tables`: all rows of these."""

    agreement: str
    is_full: bool = False
    tables: frozenset[str] = frozenset()

    def text(self) -> str:
        """The order as the argument of a command."""
        return json.dumps([self.agreement, self.is_full, sorted(self.tables)])


def parse_resync_order(text: str) -> ResyncOrder:
    """Parse the argument of a command that `ResyncOrder.text` made."""
    agreement, is_full, tables = json.loads(text)
    return ResyncOrder(agreement, is_full, frozenset(tables))


@dataclass(frozen=True, slots=True)
class TablesOrder:
    """Some tables of an agreement."""

    agreement: str
    tables: frozenset[str]

    def text(self) -> str:
        """The order as the argument of a command."""
        return json.dumps([self.agreement, sorted(self.tables)])


def parse_tables_order(text: str) -> TablesOrder:
    """Parse the argument of a command that `TablesOrder.text` made."""
    agreement, tables = json.loads(text)
    return TablesOrder(agreement, frozenset(tables))


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The row of an agreement's consumer, as the hub epoch of which it is, with the RUV behind it.

    `ruv`: of the agreement's data set, an element a line.
    """

    agreement: str
    hub_epoch: int
    ruv: tuple[str, ...]

    def text(self) -> str:
        """The order as the argument of a command."""
        return json.dumps([self.agreement, self.hub_epoch, self.ruv])


def parse_row_order(text: str) -> RowOrder:
    """Parse the argument of a command that `RowOrder.text` made."""
    agreement, hub_epoch, ruv = json.loads(text)
    return RowOrder(agreement, hub_epoch, tuple(ruv))


@dataclass(frozen=True, slots=True)
class RowRepair:
    """A row that a comparison found to differ, and who orders that it is set right, and why.

    `rid`: of the replica that is sent the row, or whose row is preferred. `before`, `after`: of a
    row that is preferred, its image at the hub and at the replica; None: it does not stand there.
    """

    table: str
    key: str
    rid: int
    who: str
    why: str
    before: str | None = None
    after: str | None = None

    def text(self) -> str:
        """The order as the argument of a command."""
        return json.dumps(asdict(self))


def parse_row_repair(text: str) -> RowRepair:
    """Parse the argument of a command that `RowRepair.text` made."""
    return RowRepair(**json.loads(text))


@dataclass(frozen=True, slots=True)
class UndoOrder:
    """Which changes of a table are undone, and who orders it and why.

    Those of the hub epochs above `to`, up to the epoch that the operator looked at: with `first`
    and `last` of these hub epochs only, both included, of this author or application, of this
    operation, of this transaction by its primary CSN, of rows with this key or for which `where`
    holds, a predicate in SQL. `is_forced`: also rows that others have written since. `part`,
    `parts`: of rows that are too many for one transaction, only this share of the keys.
    """

    table: str
    to: int
    who: str
    why: str
    first: int | None = None
    last: int | None = None
    rid: int | None = None
    app: str | None = None
    op: Op | None = None
    transaction: str | None = None
    key: str | None = None
    where: str | None = None
    is_forced: bool = False
    part: int = 0
    parts: int = 1

    def text(self) -> str:
        """The order as the argument of a command."""
        return json.dumps(asdict(self))


def parse_undo_order(text: str) -> UndoOrder:
    """Parse the argument of a command that `UndoOrder.text` made."""
    fields = json.loads(text)
    return UndoOrder(**fields | {"op": fields["op"] and Op(fields["op"])})


@dataclass(frozen=True, slots=True)
class AcceptedWrites:
    """The writes that stayed at a replica and that an operator leaves so, and who says so, and why.

    `tables`: table -> what was told of them until then, as a record `local_writes` has it.
    """

    rid: int
    tables: Mapping[str, Mapping[str, int]]
    who: str
    why: str

    def text(self) -> str:
        """The order as the argument of a command."""
        return json.dumps(asdict(self))


def parse_accepted_writes(text: str) -> AcceptedWrites:
    """Parse the argument of a command that `AcceptedWrites.text` made."""
    return AcceptedWrites(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Command:
    """An operator's command as table `config` holds it; `seen`: the hub epoch it is based on."""

    number: int
    name: CommandName
    argument: str | None
    seen: int = 0
