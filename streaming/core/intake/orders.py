"""What is done to a batch's intake before any record: an operator's orders, and what was lost.

An order that names nothing known changes nothing; the batch counts it.
"""

from collections.abc import Mapping
from dataclasses import replace

from streaming.core.intake.input_lost import InputLoss
from streaming.core.intake.intake import Intake
from streaming.core.intake.opnos import seen_opnos
from streaming.core.intake.refused_rows import due
from streaming.core.intake.sessions import sent_again
from streaming.core.intake.transactions import HELLO, OPERATOR
from streaming.core.model.change import RowKey
from streaming.core.model.command import (
    ReadmitOrder,
    ResyncOrder,
    RowOrder,
    RowRepair,
    TablesOrder,
)
from streaming.core.model.row import ALL_OFFSETS
from streaming.core.model.ruv import parse_ruv
from streaming.core.model.statuses import (
    AgreementStatus,
    AwayReason,
    ReplicaStatus,
    Stop,
    StopReason,
)
from streaming.core.records.arrival import COMPARED, AbortTransaction
from streaming.core.records.record import Reason
from streaming.core.tracking.ranges import KeyRange, RangeRealign, with_range
from streaming.core.tracking.resync import CoveredPosition


def send_again(intake: Intake, name: str) -> None:
    """Send refused rows again that an operator names; before any record of the batch.

    `name`: `r<rid>-<offset>`, the id of one conflict, or `r<rid>`, all of a replica.
    """
    found = intake.refused.named(name)
    intake.refresh_refused(found)
    intake.counts["sent_again" if found else "unknown_retries"] += max(1, len(found))


def send_due(intake: Intake) -> None:
    """Send refused rows again whose time has come; before any record of the batch."""
    found = due(intake.state.refusals, intake.topology, intake.at_ms, intake.state.lacking)
    intake.refresh_refused(found)
    if found:
        intake.counts["sent_again"] += len(found)


def refresh_dropped(
    intake: Intake, rid: int, row: RowKey, reason: str, behind: Mapping[int, int]
) -> None:
    """Take a change back at its origin that an operator dropped; before any record."""
    if intake.topology.agreement_of(rid) is not None:
        intake.repair_behind(rid, row, behind.get(rid, ALL_OFFSETS), reason)


def repair(intake: Intake, order: RowRepair, behind: Mapping[int, int]) -> None:
    """Send a row to a replica that has it otherwise; before any record.

    What that replica has written there, and the hub has not read, is concurrent with it.
    """
    if not intake.topology.sees(order.rid, order.table):
        intake.counts["unknown_repairs"] += 1
        return
    row = order.table, order.key
    intake.repair_behind(order.rid, row, behind.get(order.rid, ALL_OFFSETS), COMPARED)
    intake.counts["repaired"] += 1


def resume(intake: Intake, name: str) -> None:
    """Send to an agreement again that stopped at a refused row: first what it refused."""
    agreement = intake.agreements.get(name)
    if agreement is None or agreement.status is not AgreementStatus.REFUSED:
        intake.counts["unknown_resumes"] += 1
        return
    is_in_snapshot = intake.replicas[agreement.consumer].snapshot is not None
    resumed = agreement.resumed()
    intake.agreements[name] = resumed.snapshot_begun() if is_in_snapshot else resumed
    intake.counts["resumed"] += 1
    if resumed.is_sent_to and resumed.lacks_resync and not is_in_snapshot:
        intake.begin_resync(name)
    else:
        intake.refresh_refused(intake.refused.of(agreement.consumer).values())


def pause_tables(intake: Intake, order: TablesOrder) -> None:
    """Send nothing more of some tables of an agreement; what it sends of the others goes on.

    Of what its consumer writes there the MRE is 0, for it does not see what others write. A resync
    that is under way begins anew, without them.
    """
    name, served = order.agreement, _tables_of(intake, order.agreement)
    tables = order.tables & served
    if name not in intake.agreements or not tables or tables == served:
        intake.counts["unknown_pauses"] += 1
        return
    intake.pause_tables(name, intake.paused_tables.get(name, frozenset()) | tables)
    if intake.agreements[name].resync is not None:
        intake.begin_resync(name)
    intake.counts["pauses"] += 1


def resume_tables(intake: Intake, order: TablesOrder) -> None:
    """Send some tables of an agreement again that were paused: each as a whole, by a resync.

    What its consumer writes there until it has them is concurrent: it has not seen their rows.
    """
    name, paused = order.agreement, intake.paused_tables.get(order.agreement, frozenset())
    tables = order.tables & paused
    if name not in intake.agreements or not tables:
        intake.counts["unknown_resumes"] += 1
        return
    intake.pause_tables(name, paused - tables)
    one, ranges = intake.agreements[name], intake.state.ranges
    for table in sorted(tables & _tables_of(intake, name)):
        whole = RangeRealign(KeyRange(table), one.consumer, intake.state.hub_epoch + 1)
        ranges = with_range(ranges, whole)
        one = replace(one, scans=one.scans | {table}, resync=None)
    intake.state = replace(intake.state, ranges=ranges)
    intake.agreements[name] = one
    if one.is_sent_to:
        intake.begin_resync(name)
    intake.counts["resumed"] += 1


def send_now(intake: Intake, name: str) -> None:
    """Let go at once what an agreement holds back, or begin the copy that waits for its delay."""
    one = intake.agreements.get(name)
    if one is None or not intake.topology.times(name).is_limited:
        intake.counts["unknown_releases"] += 1
        return
    intake.released.add(name)
    if one.awaits_release:
        intake.copying.add(name)
        intake.begin_resync(name)
    intake.counts["releases"] += 1


def record_lost_input(intake: Intake, loss: InputLoss) -> None:
    """Stop a replica of which input is lost, at the first record that there is.

    One that is retired for good stays so: nothing of its topic is needed, which may be deleted.
    """
    replica, stop = intake.replicas[loss.rid], Stop(StopReason.INPUT_LOST, loss.detail)
    if replica.is_retired_for_good:
        intake.replicas[loss.rid] = replace(replica, stop_offset=loss.offset)
    else:
        intake.replicas[loss.rid] = replica.stopped(stop, loss.offset)
        intake.move(loss.rid, lambda one: one.stopped(stop))
    intake.counts["input_lost"] += 1


def recover(intake: Intake, rid: int) -> None:
    """Give up the lost input of a replica: end what is open of it, and wait for no opno.

    Nothing of it is taken before its next hello of any kind, which is answered by a full copy:
    what was never read is in its database only, and is overwritten there. Its floors go, for
    they name offsets that another topic may have; that hello sets one for all that it writes.
    """
    replica = intake.replicas.get(rid)
    if replica is None or replica.status is not ReplicaStatus.INPUT_LOST:
        intake.counts["unknown_recovers"] += 1
        return
    for context in intake.open.lists.open_of(rid):
        intake.end(context, HELLO)
    intake.opnos[rid].fill_holes()
    intake.roll_up(intake.lists_behind(rid))
    stop = Stop(StopReason.RECOVERED)
    recovered = replica.stopped(stop, replica.stop_offset or 0)
    intake.replicas[rid] = replace(recovered, floors=())
    intake.move(rid, lambda one: replace(one.stopped(stop), is_full=True, resync=None))
    intake.counts["recovered"] += 1


def retire(intake: Intake, rid: int, offset: int) -> None:
    """Take a replica out for good, before the record at this offset of its topic.

    What is open of it ends, and what is committed waits for no opno of it. Everybody else is
    sent what it wrote up to here, as before. Its rid stays known; its element leaves the RUVs once
    all have that (retention/departure.py).
    """
    replica = intake.replicas.get(rid)
    if replica is None or replica.is_retired_for_good:
        intake.counts["unknown_retires"] += 1
        return
    for context in intake.open.lists.open_of(rid):
        intake.end(context, OPERATOR)
    intake.opnos[rid].fill_holes()
    intake.roll_up(intake.lists_behind(rid))
    intake.replicas[rid] = replica.retired_for_good(offset)
    for name in intake.agreements_to(rid):
        intake.agreements[name] = intake.agreements[name].retired_for_good()
    intake.counts["retired"] += 1


def readmit(intake: Intake, order: ReadmitOrder) -> None:
    """Let a new replica have the rid of one that was retired for good, and has left the RUVs.

    Nothing of its topic before the offset is read; what the old one had written is `purged` if it
    comes again. It begins as one whose input was given up: see `recover`.
    """
    rid, state = order.rid, intake.state
    replica = intake.replicas.get(rid)
    if replica is None or not replica.is_retired_for_good or rid in state.to_leave:
        intake.counts["unknown_readmits"] += 1
        return
    intake.replicas[rid] = replica.readmitted(order.offset)
    intake.opnos[rid] = seen_opnos(intake.replicas[rid])
    intake.numbers.pop(rid, None)
    for name in intake.agreements_to(rid):
        new = intake.agreements[name].readmitted(state.hub_epoch, state.batch)
        is_sent = name in intake.topology.subscriptions
        intake.agreements[name] = new if is_sent else new.retired()
    intake.counts["readmitted"] += 1


def publish_again(intake: Intake, agreement: str) -> None:
    """Send what the consumer did not acknowledge again: its updates topic was made anew."""
    intake.agreements[agreement] = sent_again(intake.agreements[agreement], intake.at_ms)
    intake.counts["sent_again"] += 1


def resync(intake: Intake, order: ResyncOrder) -> None:
    """Begin a resync that an operator orders; before any record of the batch.

    A consumer that has no position yet begins it with its hello, and so does one that another hub
    serves.
    """
    one = intake.agreements.get(order.agreement)
    is_refused = one is not None and one.status is AgreementStatus.REFUSED
    if one is None or (one.is_stopped and not is_refused):
        intake.counts["unknown_resyncs"] += 1
        return
    scans = one.scans | (order.tables & _tables_of(intake, order.agreement))
    wanted = replace(one, is_full=one.is_full or order.is_full, scans=scans)
    is_heard = one.session is not None or intake.replicas[one.consumer].is_elsewhere
    intake.agreements[one.name] = wanted if is_heard else wanted.resumed()
    if is_heard:
        intake.begin_resync(one.name)
    intake.counts["resyncs"] += 1


def note_undelivered(intake: Intake, name: str) -> None:
    """Take a consumer for away whose topic refused what the last batch sent it.

    What was delivered of that it may have; what it lacks is brought by a resync. A packet that
    could not be written is exported again a little later.
    """
    one = intake.agreements.get(name)
    if one is not None and one.feed is not None:
        promised = intake.state.to_send.get(name) if one.is_sent_to else None
        again = one.unsent(promised)
        intake.agreements[name] = replace(again, feed=one.feed.not_written())
    elif one is not None and one.is_sent_to:
        intake.agreements[name] = one.sent_again().away(AwayReason.UNWRITABLE, intake.at_ms)


def note_writable(intake: Intake, name: str) -> None:
    """Bring back a consumer that is away because its topic could not be written, and now can."""
    one = intake.agreements.get(name)
    if one is not None and one.is_unwritable:
        intake.begin_resync(name)


def export(intake: Intake, name: str) -> None:
    """Export a packet with this batch, though it may say no more than what the hub has got."""
    one = intake.agreements.get(name)
    if one is None or one.feed is None or one.is_retired:
        intake.counts["unknown_exports"] += 1
        return
    intake.agreements[name] = replace(one, feed=one.feed.ordered())
    intake.counts["exports"] += 1


def pause(intake: Intake, name: str) -> None:
    """Send nothing more to a consumer until an operator orders a resync."""
    one = intake.agreements.get(name)
    if one is None or one.is_stopped:
        intake.counts["unknown_pauses"] += 1
        return
    intake.agreements[name] = one.away(AwayReason.PAUSED, intake.at_ms)
    intake.counts["pauses"] += 1


def change_row(intake: Intake, order: RowOrder) -> None:
    """Set the row of a consumer in the matrix: sending goes on behind that hub epoch.

    Too low costs bandwidth only: the consumer skips what it has, of a page over several hub epochs,
    too. It is never below the consumer's own word, behind which everything is kept. A resync begins
    again: its pages have no numbers. What the consumer is believed to have been sent is not
    lowered, for it may have arrived (additions 7.5).
    """
    one = intake.agreements.get(order.agreement)
    if one is None or not one.is_sent_to or order.hub_epoch > intake.state.hub_epoch:
        intake.counts["unknown_rows"] += 1
        return
    intake.counts["rows_set"] += 1
    if one.resync is not None:
        intake.agreements[one.name] = one.sent_again()
        intake.begin_resync(one.name)
        return
    row = CoveredPosition(order.hub_epoch, parse_ruv(order.ruv))
    intake.agreements[one.name] = one.sent_behind(max(row, one.acked, key=lambda at: at.covers))


def end_by_hand(intake: Intake, abort: AbortTransaction) -> None:
    """End the open transaction that an operator names; before any record of the batch.

    Its rows are refreshed at its origin, behind what the hub read so far. What is committed
    holds, so the word then has no effect.
    """
    contexts = intake.open.lists.open_with(abort.csn)
    for context in contexts:
        intake.want(context)
        rid, csns = context[1], intake.open.lists.csns_of(context)
        rows = dict.fromkeys(intake.open.changes[csn].change.row for csn in csns)
        behind = abort.behind.get(rid, ALL_OFFSETS)
        for row in rows:
            intake.repair_behind(rid, row, behind, Reason.ENDED)
        intake.end(context, OPERATOR)
    intake.counts["ended_by_hand" if contexts else "unknown_aborts"] += max(1, len(contexts))


def _tables_of(intake: Intake, name: str) -> frozenset[str]:
    subscription = intake.topology.subscriptions.get(name)
    return subscription.tables if subscription else frozenset()
