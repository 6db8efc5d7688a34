"""Carry out an operator's commands."""

from collections.abc import Mapping
from dataclasses import dataclass

from checkpoints import pending
from checkpoints.commit.epochs import Plan
from checkpoints.store import StateStore
from streaming.core.conflict.masked import NONE_MASKED, MaskedTables
from streaming.core.intake import orders
from streaming.core.intake.intake import Intake
from streaming.core.model.command import (
    Command,
    CommandName,
    parse_readmit_order,
    parse_resync_order,
    parse_row_order,
    parse_row_repair,
    parse_tables_order,
)
from streaming.core.model.csn import rid_of
from streaming.core.records.arrival import AbortTransaction
from streaming.operator import prefer, release, resolve, undo
from streaming.operator.hub_changes import HubChangeWriter
from streaming.operator.release import Originals, ReleasedRecords, Revalidate, left_different
from streaming.operator.resolve import Resolved
from streaming.operator.undo import UndoneRows, undone_rows


@dataclass(frozen=True, slots=True)
class CommandEffects:
    """The effects of a batch's commands, apart from those on `Intake`.

    `released`: the records that left quarantine. `nudged`: an operator runs `level`, so this batch
    sends every lagging covers.
    """

    released: ReleasedRecords
    resolved: Resolved
    nudged: bool


def carry_out(
    plan: Plan,
    intake: Intake,
    store: StateStore,
    revalidate: Revalidate,
    originals: Originals,
    *,
    hub_rid: int,
    topics: Mapping[str, int],
    undone: UndoneRows = undone_rows,
    masked: MaskedTables = NONE_MASKED,
) -> CommandEffects:
    """Carry out the commands of a plan, and what is due, before any record of its batch.

    1. `abort` ends open transactions, `retry` and `resume` send refused rows again.
    2. `release` and `drop` act on the quarantine; a dropped change's row is refreshed.
    3. `accept` and `override` act on conflicts, `repair` and `prefer` on rows that were compared.
    4. `recover` gives up the lost input of a replica, `retire` takes one out for good, `readmit`
       lets a new one have its rid; `resync` brings a consumer what it lacks, `pause` sends it
       nothing more, or nothing of some tables, `resume --now` lets go what its delay holds back,
       `chepoch` sets from where it is sent to, `export` makes a packet of what it was not sent.
    5. `undo` writes rows back as they stood, by the tables as the last batch left them.

    `originals`: reads records again of which only the head is kept.
    `hub_rid`: the author of the changes that are made. `topics`: topic -> rid of its replica.
    `undone`: what an undo writes back.
    """
    quarantined, conflicts = list[Command](), list[Command]()
    preferred, undos = list[Command](), list[Command]()
    nudged = False
    behind = {topics[topic]: n - 1 for topic, n in plan.offsets_from.items() if topic in topics}
    for command in plan.commands:
        match command.name:
            case CommandName.ABORT:
                _abort(intake, command, behind, store)
            case CommandName.RETRY:
                orders.send_again(intake, command.argument or "")
            case CommandName.RELEASE | CommandName.DROP:
                quarantined.append(command)
            case CommandName.ACCEPT | CommandName.OVERRIDE:
                conflicts.append(command)
            case CommandName.RECOVER:
                orders.recover(intake, int(command.argument or 0))
            case CommandName.RESUME:
                orders.resume(intake, command.argument or "")
            case CommandName.PAUSE_TABLES:
                orders.pause_tables(intake, parse_tables_order(command.argument or ""))
            case CommandName.RESUME_TABLES:
                orders.resume_tables(intake, parse_tables_order(command.argument or ""))
            case CommandName.SEND_NOW:
                orders.send_now(intake, command.argument or "")
            case CommandName.RETIRE:
                rid = int(command.argument or 0)
                orders.retire(intake, rid, behind.get(rid, -1) + 1)
            case CommandName.READMIT:
                orders.readmit(intake, parse_readmit_order(command.argument or ""))
            case CommandName.RESYNC:
                orders.resync(intake, parse_resync_order(command.argument or ""))
            case CommandName.PAUSE:
                orders.pause(intake, command.argument or "")
            case CommandName.CHEPOCH:
                orders.change_row(intake, parse_row_order(command.argument or ""))
            case CommandName.EXPORT:
                orders.export(intake, command.argument or "")
            case CommandName.REPAIR:
                orders.repair(intake, parse_row_repair(command.argument or ""), behind)
            case CommandName.PREFER:
                preferred.append(command)
            case CommandName.UNDO:
                undos.append(command)
            case CommandName.RECOVER_HUB:
                intake.counts["hub_recovered"] += 1
            case CommandName.LEVEL:
                nudged = True
            case CommandName.PIN | CommandName.UNPIN:
                pass  # checkpoints/maintenance/pins.py reads them, beside the batches
            case CommandName.ACCEPT_LOCAL:
                pass  # streaming/facts/status/local_writes.py reads them
    orders.send_due(intake)
    left = left_different(store, quarantined, intake.topology, plan.batch - 1)
    for (rid, row), reason in left.items():
        orders.refresh_dropped(intake, rid, row, reason, behind)
    writer = HubChangeWriter(intake, hub_rid, plan.at_ms)
    looks = revalidate, originals
    released = release.act(store, quarantined, writer, *looks, plan.batch, masked=masked)
    resolved = resolve.act(store, conflicts, writer, plan.batch, masked=masked)
    intake.counts["unknown_repairs"] += prefer.act(preferred, writer)
    tables, state = intake.topology.tables, intake.state
    epochs = state.hub_epoch, state.purge_epoch
    if refused := undo.act(undos, store, tables, writer, *epochs, undone):
        intake.counts["refused_undos"] += refused
    return CommandEffects(released, resolved, nudged)


def _abort(intake: Intake, command: Command, behind: Mapping[int, int], store: StateStore) -> None:
    if command.argument:
        named = _transaction_named(intake, command.argument, store)
        orders.end_by_hand(intake, AbortTransaction(named, behind))


def _transaction_named(intake: Intake, csn: str, store: StateStore) -> str:
    """The CSN by which memory knows the transaction of this change, which may be on disk."""
    rid, opened = rid_of(csn), intake.open
    if opened.lists.open_with(csn) or csn > opened.on_disk.get(rid, ""):
        return csn
    return pending.transaction_of(store, rid, csn, intake.state.batch) or csn
