"""Conflict functions: what decides who wins when a change is concurrent with the row."""

import re
from dataclasses import dataclass
from enum import StrEnum

from streaming.core.model.errors import FunctionError

SUB_EPOCH_BITS = 6
"""The low bits of a hub epoch that EPOCH(bits) may leave out (NDB's default of extra GCI bits)."""
MAX_BITS = 31

_TEXT = re.compile(r"(?P<rule>[A-Z_0-9]+)(?:\((?P<argument>.+)\))?")
_USER = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class ConflictRule(StrEnum):
    """Who wins a conflict (docs/protocol.md, Conflict functions; NDB: ndb_conflict.cc)."""

    EPOCH = "EPOCH"
    """The row as it stands at the hub wins; EPOCH(bits) compares coarser row epochs."""
    EPOCH_TRANS = "EPOCH_TRANS"
    """As EPOCH; one concurrent row rejects its transaction and all that built on its rows."""
    EPOCH2 = "EPOCH2"
    """As EPOCH; a delete of a deleted row wins, and so do later writes of its author."""
    OLD = "OLD"
    """The change wins if its before-image has the row's value of the column."""
    MAX = "MAX"
    """The change wins if its value of the column is larger; a delete is judged as by OLD."""
    MAX_DELETE_WIN = "MAX_DELETE_WIN"
    """As MAX, and a delete of a row always wins."""
    MAX_INS = "MAX_INS"
    """As MAX, and an insert on a row is judged as an update."""
    MAX_DEL_WIN_INS = "MAX_DEL_WIN_INS"
    """As MAX_INS, and a delete of a row always wins."""
    CSN = "CSN"
    """The larger CSN wins: the newest by the replicas' clocks."""
    PRIMARY = "PRIMARY"
    """The change wins if it is of the named replica; between others the row does."""
    PASS = "PASS"  # noqa: S105 - no password
    """The change wins: the last at the hub."""
    USER = "USER"
    """A Python function of the user's decides, or merges both."""


COLUMN_RULES = frozenset(
    {
        ConflictRule.OLD,
        ConflictRule.MAX,
        ConflictRule.MAX_DELETE_WIN,
        ConflictRule.MAX_INS,
        ConflictRule.MAX_DEL_WIN_INS,
    }
)
"""The rules that compare a column."""
_WITH_ARGUMENT = COLUMN_RULES | {ConflictRule.PRIMARY}


@dataclass(frozen=True, slots=True)
class ConflictFunction:
    """A rule with its argument.

    `argument`: the column, the bits, the replica's name or the import path, as it is written.
    `replica`: of PRIMARY, the replica's rid.
    """

    rule: ConflictRule = ConflictRule.EPOCH
    argument: str | None = None
    replica: int | None = None

    @property
    def bits(self) -> int | None:
        """Of EPOCH(bits), how many low bits of an epoch are kept; None: all."""
        return int(self.argument) if self.rule is ConflictRule.EPOCH and self.argument else None

    @property
    def column(self) -> str | None:
        """The column that is compared."""
        return self.argument if self.rule in COLUMN_RULES else None

    def __str__(self) -> str:
        """Return the function as it is written in the configuration."""
        if self.argument is None or self.rule is ConflictRule.USER:
            return self.argument or self.rule.value
        return f"{self.rule}({self.argument})"

    def stored(self, epoch: int) -> int:
        """A row's epoch as this function compares it: never smaller than it is.

        With fewer bits than a sub-epoch needs, what does not fit becomes all ones: false
        conflicts, never a missed one (NDB: extra GCI bits).
        """
        if self.bits is None or not epoch:
            return epoch
        ones = (1 << SUB_EPOCH_BITS) - 1
        fits = (epoch & ones) < (1 << min(self.bits, SUB_EPOCH_BITS)) - 1
        return epoch if fits else epoch | ones


EPOCH = ConflictFunction()


def parse_function(text: str) -> ConflictFunction:
    """The function that the configuration names; FunctionError when there is none of that name.

    The rid of PRIMARY's replica is looked up by the caller.
    """
    if _USER.fullmatch(text):
        return ConflictFunction(ConflictRule.USER, text)
    found = _TEXT.fullmatch(text)
    rule = found["rule"] if found else None
    named = [r for r in ConflictRule if r is not ConflictRule.USER and r.value == rule]
    if found is None or not named:
        raise FunctionError(f"there is no such conflict function: use one of {choices()}")
    function = ConflictFunction(named[0], found["argument"])
    _check_argument(function)
    return function


def choices() -> str:
    """List how each function is written in the configuration."""
    columns = [f"{rule}(column)" for rule in ConflictRule if rule in COLUMN_RULES]
    plain = [
        ConflictRule.EPOCH_TRANS,
        ConflictRule.EPOCH2,
        *columns,
        ConflictRule.CSN,
        "PRIMARY(replica)",
        ConflictRule.PASS,
    ]
    return ", ".join(["EPOCH", "EPOCH(bits)", *plain, "module:function"])


def _check_argument(function: ConflictFunction) -> None:
    rule, argument = function.rule, function.argument
    if rule in _WITH_ARGUMENT and argument is None:
        what = "replica" if rule is ConflictRule.PRIMARY else "column"
        raise FunctionError(f"it lacks its {what}: write {rule}({what})")
    if rule not in _WITH_ARGUMENT and rule is not ConflictRule.EPOCH and argument is not None:
        raise FunctionError(f"write {rule}: it takes no argument")
    is_bits = argument is None or (argument.isdecimal() and int(argument) <= MAX_BITS)
    if rule is ConflictRule.EPOCH and not is_bits:
        raise FunctionError(f"bits are 0 to {MAX_BITS}: write EPOCH(6), or EPOCH")
