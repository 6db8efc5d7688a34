"""What must hold of every history: the promises of the hub, checked against what was written."""

from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from streaming.core.model.change import HUB_RID, Change, Op, RowKey
from streaming.core.model.csn import rid_of
from streaming.core.model.function import ConflictRule
from streaming.core.records.record import Commit, Item, Reason, Update
from tests.model.backend import Judgement
from tests.model.hub import PureHub
from tests.model.replica import ABSENT, Line, Replica, Version, Write, table_of
from tests.model.world import World
from tests.reference.columns import with_columns

Known = tuple[str, str]
"""(csn, content): names one change, also where a CSN was given twice."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """A judged change, and the write of the version that it met; None: nobody wrote that.

    A CSN is ambiguous: of two writes with one CSN a row holds the accepted one. `since`: the hub
    epoch of that version. `is_lost_elsewhere`: it lost at another hub, which has recorded it.
    `was_hidden`: that version is a delete that its replica is not sent, because a filter kept the
    row from it, or because it is an archive and inserts: it saw no row, and there was none.
    """

    judged: Judgement
    write: Write
    met: Write | None
    since: int
    is_lost_elsewhere: bool = False
    was_hidden: bool = False

    @property
    def is_seen(self) -> bool:
        """Return whether its replica's database ever held the version that it met, or a copy.

        An operator who released a change had seen what the hub had.
        """
        if self.write.change.rid == HUB_RID or self.is_lost_elsewhere:
            return True
        met, seen = self.met.version if self.met else ABSENT, self.write.seen
        is_held = met in seen or any(one.is_sent and one.csn == met.csn for one in seen)
        is_copied = met.image is None and self.since < self.write.copied
        return is_held or is_copied or self.was_hidden

    @property
    def deletes_twice(self) -> bool:
        """Return whether a delete met a delete, or a row that nobody wrote: nothing was lost."""
        met = Op.DELETE if self.met is None else self.met.change.op
        return self.write.change.op is Op.DELETE and met in (Op.DELETE, Op.TRUNCATE)


def check_level(world: World) -> None:
    """When all is quiet: the same rows at all replicas and the hub, and the hub knows it.

    A row may differ only where it is listed as refused or uncarried.
    """
    expected = world.rows_of_hub()
    for name in world.replicas:
        listed = world.refused_at(name) | world.uncarried_at(name)
        mine, theirs = (
            {
                k: image
                for k, image in rows.items()
                if world.sees(name, k) and not {k, table_of(k)} & listed
            }
            for rows in (world.held(name, expected), world.shown(name, expected))
        )
        assert mine == theirs, f"{name} and the hub hold different rows"
        assert world.is_level(name), f"{name} is not level with the hub"


def check_nothing_is_refused(world: World) -> None:
    """No row is listed as refused."""
    assert not world.hub.refused()


def check_nothing_is_uncarried(world: World) -> None:
    """No row is listed as uncarried."""
    assert not world.hub.uncarried()


def check_no_image_is_lost(world: World) -> None:
    """What no record holds stands at its writer, or is saved there.

    But for what its user overwrote himself, or what was lost with the database. Every other image
    is in its record, which is in the changelog or in quarantine (check_nothing_lost).
    """
    for name, replica in world.replicas.items():
        there = {*replica.rows.values(), *replica.saved, *replica.given_up}
        for prim_csn, version in replica.longs:
            if prim_csn in {None, *replica.done}:
                assert version in there, f"{version} of {name} is nowhere"


def check_nothing_lost(world: World) -> None:
    """Every committed write that reached its topic is judged once, or recorded elsewhere.

    But for one that was deleted from its topic unread. A replica of which input is lost is stopped:
    what it publishes until it starts anew is in quarantine. What is `hidden` there is judged so.
    """
    judged = Counter((one.csn, one.content) for one in world.hub.changelog())
    kept = _quarantined(world, {*Reason} - {Reason.SESSION, Reason.HIDDEN})
    starts_anew = world.begins or world.taken_out
    ended, given_up = world.hub.ended(), _quarantined(world) if starts_anew else set()
    for replica in world.replicas.values():
        for write in _committed(replica):
            change = write.change
            known = change.csn, change.content
            assert judged[known] <= 1, f"{known} is judged {judged[known]} times"
            lists = (known in judged) + (known in kept or change.csn in ended)
            if known in world.lost or (not lists and known in given_up):
                continue
            assert lists == 1, f"{change} is in {lists} of changelog and quarantine"


def check_what_is_hidden_is_known(world: World) -> None:
    """What a range deletes unsaved, because the hub hides it, is in a record that the hub has.

    But for what is not in a topic yet.
    """
    known = {one.csn for one in world.hub.changelog()} | set(world.hub.ended())
    known |= {one.csn for one in _quarantined_changes(world, frozenset(Reason))}
    writes = [write for one in world.replicas.values() for write in one.writes]
    known |= {write.change.csn for write in writes if not write.line.reached}
    for name, replica in world.replicas.items():
        for version in replica.hidden_away:
            csn = version.csn
            is_known = csn is None or rid_of(csn) == HUB_RID or csn in known
            assert is_known, f"{version} of {name} was deleted as hidden, and nobody has it"


def check_losers_are_recorded(world: World) -> None:
    """Every rejected change is in the conflicts, once; so is every version overwritten unseen."""
    recorded = [(one.loser, one.winner) for one in world.hub.conflicts()]
    judged = [(one, (one.csn, one.met), (one.met, one.csn)) for one in world.hub.changelog()]
    expected = [
        lost if one.verdict == "rejected" else won
        for one, lost, won in judged
        if one.verdict == "rejected" or won in recorded
    ]
    assert recorded == expected
    for meeting, (one, _, won) in zip(_meetings(world), judged, strict=True):
        unseen = one.verdict == "accepted" and not meeting.is_seen
        if unseen and not meeting.deletes_twice:
            change = meeting.write.change
            assert won in recorded, f"{change} overwrote {one.met}, never seen there"


def check_accepted_saw_what_they_overwrote(world: World) -> None:
    """Where the row wins every conflict, an accepted change knew the version it overwrites."""
    for meeting in _meetings(world):
        one, change = meeting.judged, meeting.write.change
        function = world.hub.topology.tables[change.table].function
        if one.verdict == "accepted" and function.rule in (
            ConflictRule.EPOCH,
            ConflictRule.EPOCH_TRANS,
        ):
            assert meeting.is_seen, f"{change} overwrote {one.met}, never seen there"


def check_truncates_saw_every_row(world: World) -> None:
    """An accepted truncate takes no row that its replica's database never held, by any function."""
    there = dict[RowKey, Write]()
    for meeting in _meetings(world):
        write = meeting.write
        if meeting.judged.verdict != "accepted":
            continue
        if write.change.op is not Op.TRUNCATE:
            there[write.change.row] = write
            continue
        taken = [row for row in there if row[0] == write.change.table]
        for version in (there.pop(row).version for row in taken):
            held = {one.csn for one in write.seen}
            assert version.csn in held, f"{write.change} took {version}, never seen there"


def check_transactions_go_whole(world: World) -> None:
    """Under EPOCH_TRANS a loser takes its transaction along, and all that built on its rows.

    A delete of a deleted row is no such loser. A row of a snapshot builds on nothing.
    """
    gone = set[Version]()
    together: dict[tuple[int, str], list[Meeting]] = {}
    for meeting in _meetings(world):
        one = meeting.judged
        together.setdefault((rid_of(one.csn), one.prim_csn or one.csn), []).append(meeting)
    for (_, primary), meetings in together.items():
        if any(_builds_on(one.write, gone) or _takes_along(world, one) for one in meetings):
            assert {one.judged.verdict for one in meetings} == {"rejected"}, (
                f"half of {primary} was rejected"
            )
            gone |= {one.write.version for one in meetings}


def _builds_on(write: Write, versions: AbstractSet[Version]) -> bool:
    return write.change.snapshot is None and bool(write.over & versions)


def _takes_along(world: World, meeting: Meeting) -> bool:
    function = world.hub.topology.tables[meeting.write.change.table].function
    lost = meeting.judged.verdict == "rejected" and not meeting.deletes_twice
    return lost and function.rule is ConflictRule.EPOCH_TRANS


def _meetings(world: World) -> list[Meeting]:
    """Every judged change in hub order."""
    writes = {
        (write.change.csn, write.change.content): write
        for replica in world.replicas.values()
        for write in replica.writes
    }
    writes |= {(one.change.csn, one.change.content): one for one in _of_hub(world)}
    elsewhere = world.hub.lost_elsewhere()
    found, rows = list[Meeting](), dict[str | None, tuple[Write | None, int]]({None: (None, 0)})
    for one in world.hub.changelog():
        write = writes[one.csn, one.content]
        met, since = rows[one.met]
        hidden = met is not None and _deletes_unsent(world, met.change, write.change)
        found.append(Meeting(one, write, met, since, one.met in elsewhere, hidden))
        if one.verdict == "accepted":
            rows[one.csn] = write, one.hub_epoch
    return found


def _deletes_unsent(world: World, met: Change, change: Change) -> bool:
    """Return whether the writer of `change`, which saw no row, is never sent the delete `met`."""
    deletes = met.op in (Op.DELETE, Op.TRUNCATE)
    if deletes and change.op is Op.INSERT and change.rid in world.archives:
        return True
    is_of_row = met.op is Op.DELETE and met.before is not None
    return is_of_row and world.was_hidden(change.rid, met.table, met.before or "")


def _of_hub(world: World) -> Iterator[Write]:
    """The hub's changes: whoever released what they were made of, or preferred it, wrote them."""
    released = _quarantined_changes(world, {Reason.SKEW, Reason.RIGHTS, Reason.COLUMN})
    kept = [_as_read(world, change) for change in released]
    for judged in world.hub.changelog():
        for change in (*kept, *world.preferred) if rid_of(judged.csn) == HUB_RID else ():
            own = Change(judged.csn, HUB_RID, 0, *change.row, change.op, change.after)
            own = own._replace(before=change.before)
            if own.content == judged.content:
                yield Write(Line(own), frozenset(), frozenset())
    for change in world.hub.undone():
        yield Write(Line(change), frozenset(), frozenset())


def _as_read(world: World, change: Change) -> Change:
    """A change as the hub reads it: without the columns that its replica is not sent."""
    shown = world.hub.topology.columns.get(change.rid, {}).get(change.table)
    return change if shown is None else with_columns(change, shown)


def check_right_clocks_are_believed(world: World) -> None:
    """Nobody's change is too far ahead because of another one's clock."""
    wrong = {one.rid for one in world.replicas.values() if one.had_wrong_clock}
    skewed = {kept.rid for kept in world.hub.quarantine() if kept.reason is Reason.SKEW}
    assert skewed <= wrong, "the clock of another replica has made their CSNs"


def check_what_is_renumbered_is_accepted(world: World) -> None:
    """What was dated anew is refused as skewed only with or behind what was not, and was refused.

    With: in one transaction, which goes to quarantine as a whole.
    """
    for name, renumbered in world.renumbered.items():
        rid = world.replicas[name].rid
        others = {
            change
            for change in _quarantined_changes(world, {*Reason})
            if change.rid == rid and change.csn not in renumbered
        }
        along = {change.prim_csn for change in others} - {None}
        skewed = {
            change.csn
            for change in _quarantined_changes(world, {Reason.SKEW})
            if change.csn in renumbered and change.prim_csn not in along
        }
        given = min(skewed, default=None)
        if given is not None:
            first = min((change.csn for change in others), default=given)
            assert first < given, f"{name} was given {given}"


def check_ruv_follows_changelog(world: World) -> None:
    """The RUV knows nothing that the changelog lacks, and lacks nothing that it has."""
    largest: dict[int, str] = {}
    for one in world.hub.changelog():
        rid = rid_of(one.csn)
        largest[rid] = max(one.csn, largest.get(rid, ""))
    named = world.hub.ruv().max_csns()
    gone = world.taken_out - named.keys()  # of them the changelog knows, the RUV no more
    assert named == {rid: csn for rid, csn in largest.items() if rid not in gone}
    known = {(one.csn, one.content) for one in world.hub.changelog()} | _quarantined(world)
    ended = world.hub.ended()
    for change in _taken(world):
        if world.hub.ruv().covers(change.csn) and change.csn not in ended:
            assert (change.csn, change.content) in known, f"the RUV covers {change}, not judged"


def check_uncommitted_is_invisible(world: World) -> None:
    """A change of a transaction is judged or sent only after its commit was in the topic."""
    commits = {
        (world.replicas[name].rid, record.prim_csn)
        for name, received in world.received.items()
        for _, record in received
        if isinstance(record, Commit)
    }
    seen: list[tuple[str | None, str | None]] = [
        (one.csn, one.prim_csn) for one in world.hub.changelog()
    ]
    for replica in world.replicas.values():
        batches = (u for u in world.hub.updates(replica.rid) if isinstance(u, Update))
        for update in batches:
            items = (item for item in update.items if isinstance(item, Item))
            seen += [(item.csn, item.prim_csn) for item in items]
    for csn, prim_csn in seen:
        if csn and prim_csn and rid_of(csn) != HUB_RID:  # an undo is one transaction as it is made
            assert (rid_of(csn), prim_csn) in commits, f"{csn} of {prim_csn} is not committed"


def check_transactions_are_whole(world: World) -> None:
    """Of agents that follow the contract: all of a transaction is judged in one hub epoch, or none.

    But for what was deleted from its topic unread. Nothing of theirs is in quarantine but what a
    hello cut off; what was lost or given up and comes again may come behind what followed it, and
    so may the rest of its transaction.
    """
    behind = {Reason.LATE, Reason.REUSED}
    reasons = {kept.reason for kept in world.hub.quarantine()}
    assert reasons <= {Reason.ENDED, Reason.SESSION, Reason.HIDDEN, *behind}
    gone = _quarantined(world, {Reason.SESSION}) | world.lost
    assert _transactions(world, _quarantined(world, behind)) <= _transactions(world, gone)
    epochs = {(one.csn, one.content): one.hub_epoch for one in world.hub.changelog()}
    for replica in world.replicas.values():
        together: dict[str, set[int | None]] = {}
        for write in _committed(replica):
            change = write.change
            if (change.csn, change.content) in world.lost:
                continue
            epoch = epochs.get((change.csn, change.content))
            together.setdefault(change.prim_csn or change.csn, set()).add(epoch)
        halves = {prim: seen for prim, seen in together.items() if len(seen) > 1}
        assert not halves, f"transactions of {replica.name} in parts: {halves}"


def check_yes_is_true(world: World) -> None:
    """Whoever is told that all are level finds the same rows at all replicas.

    But for what was written since its agent last said how much it has not published, and for
    replicas whose agents were killed: only their silence tells of that, and no clock is modelled.
    Nor does the hub know of what is still in an outbox.
    """
    if not world.hub.says_level():
        return
    expected = world.rows_of_hub()
    for name, one in world.replicas.items():
        if not world.has_all(name):
            continue
        assert not one.is_ended, f"{name} has ended, and all are said to be level"
        if not one.is_up:
            continue
        assert all(line.reached for line in world.told.get(name, ())), f"{name} has more to publish"
        if one.unpublished():
            continue
        mine, theirs = (
            {key: image for key, image in rows.items() if world.sees(name, key)}
            for rows in (world.held(name, expected), world.shown(name, expected))
        )
        assert mine == theirs, f"all are said to be level, and {name} holds other rows"


def check_nothing_is_early(world: World) -> None:
    """What a delayed consumer is sent is as old as its delay, but for what an operator let go."""
    hub = world.hub
    if not isinstance(hub, PureHub):
        return
    committed = dict[int, int]()  # a hub that is put back commits the same numbers again
    for batch in hub.decided:
        after = batch.decision.state
        if after.hub_epoch > batch.before.hub_epoch:
            committed[after.hub_epoch] = batch.plan.clock_ms
        for name, one in after.to_send.items():
            delay_ms, held = hub.topology.times(name).delay_ms, batch.before.held_back.get(name)
            is_released = name in batch.plan.send_nows or (held and held.released >= one.to)
            is_free = is_released or one.after == one.to  # a batch without any row
            if not delay_ms or is_free or after.agreements[name].resync is not None:
                continue
            at_ms = committed.get(one.to, 0)
            assert batch.plan.clock_ms - at_ms >= delay_ms, f"{name} was sent {one.to} early"


ALWAYS = (
    check_nothing_is_early,
    check_losers_are_recorded,
    check_uncommitted_is_invisible,
    check_ruv_follows_changelog,
    check_no_image_is_lost,
    check_right_clocks_are_believed,
    check_what_is_renumbered_is_accepted,
)
AT_REST = (
    check_level,
    check_nothing_lost,
    check_what_is_hidden_is_known,
    check_accepted_saw_what_they_overwrote,
    check_truncates_saw_every_row,
    check_transactions_go_whole,
    *ALWAYS,
)


def _committed(replica: Replica) -> Iterator[Write]:
    """The writes that hold at their replica and were published."""
    for write in replica.writes:
        if write.line.reached and write.change.prim_csn in {None, *replica.done}:
            yield write


def _transactions(world: World, changes: AbstractSet[Known]) -> set[tuple[str, str]]:
    """(replica, primary CSN) of the transactions that these changes are of."""
    return {
        (name, write.change.prim_csn or write.change.csn)
        for name, replica in world.replicas.items()
        for write in replica.writes
        if (write.change.csn, write.change.content) in changes
    }


def _quarantined(world: World, reasons: AbstractSet[str] = frozenset(Reason)) -> set[Known]:
    """(csn, content) of the changes in quarantine for one of these reasons."""
    return {(one.csn, one.content) for one in _quarantined_changes(world, reasons)}


def _quarantined_changes(world: World, reasons: AbstractSet[str]) -> list[Change]:
    """The changes in quarantine for one of these reasons."""
    names = {replica.rid: name for name, replica in world.replicas.items()}
    records = (
        world.received[names[kept.rid]][kept.offset][1]
        for kept in world.hub.quarantine()
        if kept.reason in reasons
    )
    return [change for change in records if isinstance(change, Change)]


def _taken(world: World) -> Iterator[Change]:
    """The changes that the hub has taken from the topics."""
    for name, received in world.received.items():
        for _, record in received[: world.hub.offset(world.replicas[name].rid)]:
            if isinstance(record, Change) and (record.csn, record.content) not in world.lost:
                yield record
