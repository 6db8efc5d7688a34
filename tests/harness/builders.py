"""Changes and their CSNs: a test names a change by a number, from which its CSN follows."""

from streaming.core.model.change import Change, Op
from streaming.core.model.csn import Csn, CsnParts, format_csn
from streaming.core.model.ruv import Ruv
from streaming.core.state.agreement_state import SendRange
from streaming.core.tracking.resync import CoveredPosition


def csn(number: int, rid: int = 1) -> Csn:
    """The CSN of a replica's change of this number.

    Numbers rise with time, four to a second, so that replicas with the same numbers interleave.
    """
    return format_csn(CsnParts(1 + number // 4, number % 4, rid, 0))


def change(
    number: int,
    key: str = "k",
    value: str | None = "v",
    *,
    rid: int = 1,
    epoch: int = 1,
    tx: int | None = None,
    opno: int | None = None,
) -> Change:
    """A write of table t (columns k and v, key k), or a delete if there is no value.

    `tx`: the number of the change that names its transaction.
    """
    op = Op.DELETE if value is None else Op.UPDATE
    after = None if value is None else f'{{"k":"{key}","v":"{value}"}}'
    prim = None if tx is None else csn(tx, rid)
    text = f'{{"k":"{key}"}}'
    return Change(csn(number, rid), rid, epoch, "t", text, op, after, prim_csn=prim, opno=opno)


def send_range(after: int, to: int, prev: int, known: Ruv, ruv: Ruv | None = None) -> SendRange:
    """What is sent where no position is held; `ruv`: behind it, else `known`."""
    return SendRange(after, to, prev, known, CoveredPosition(to, known if ruv is None else ruv))
