"""Shapes of steps at which the hub means something else, and the law that holds instead."""

import json
from collections.abc import Iterable, Iterator

from streaming.core.conflict.judge import Judged, Verdict
from streaming.core.model.change import Change, Op, RowKey
from streaming.core.model.function import COLUMN_RULES, ConflictRule
from tests.vectors.epochs import Played, exchange
from tests.vectors.origin_world import World
from tests.vectors.outcome import About, Case, Difference, Explains
from tests.vectors.steps import CLUSTERS, Sync
from tests.vectors.story import Story

NOT_WHOLE = frozenset(ConflictRule) - {ConflictRule.EPOCH_TRANS}
EPOCH2 = (ConflictRule.EPOCH2,)
BY_EPOCH = (ConflictRule.EPOCH, ConflictRule.EPOCH_TRANS, ConflictRule.EPOCH2)
"""Functions that look at who had seen what."""
RAISED = (
    ConflictRule.MAX,
    ConflictRule.MAX_DELETE_WIN,
    ConflictRule.MAX_INS,
    ConflictRule.MAX_DEL_WIN_INS,
)
"""Functions under which an update must raise its column."""
ALONE = (About.CONTENT, About.COUNT, About.EXCEPTIONS)
"""What may be otherwise where a write wins or loses without its transaction."""
WHOLE = (*ALONE, About.REJECTS)
"""What may be otherwise where it goes with its transaction."""


def insert_meets_unseen_delete(case: Case, _: Played) -> Explains | None:
    """The other cluster inserts a row that the detecting one deleted; it had not seen that."""
    story = Story.of(case)
    inserts = (p for p in _losing_inserts(story) if story.meets_unseen(p, Op.DELETE))
    return _explains(story, inserts, *WHOLE)


def insert_follows_rejected_write(case: Case, _: Played) -> Explains | None:
    """It had seen the delete, but not yet the answer to what it wrote before it saw that."""
    story = Story.of(case)
    rejected = set(story.whole)
    for place in story.others(BY_EPOCH):
        if story.meets_unseen(place, Op.DELETE) or rejected.intersection(story.unanswered(place)):
            rejected.add(place)
    inserts = _losing_inserts(story)
    followers = (p for p in inserts if rejected.intersection(story.unanswered(p)))
    return _explains(story, followers, *WHOLE)


def _losing_inserts(story: Story) -> list[int]:
    """The other's inserts, but those that win after a winning delete of its own."""
    second_deletes = set(_second_deletes(story))

    def wins(place: int) -> bool:
        theirs = story.words(place, story.judged(place), by_detecting=True)
        won = second_deletes.intersection(story.unanswered(place))
        return any(theirs[-1] < story.judged(delete) for delete in won)

    return [place for place in story.others(BY_EPOCH, Op.INSERT) if not wins(place)]


def _second_deletes(story: Story) -> list[int]:
    """The other's deletes that win over a delete which they did not see."""
    deletes = story.others(EPOCH2, Op.DELETE)
    return [place for place in deletes if story.meets_unseen(place, Op.DELETE)]


def write_builds_on_rejected_transaction(case: Case, _: Played) -> Explains | None:
    """In a later epoch; its table's function, or the row's absence, hides that from the origin."""
    story = Story.of(case)
    hidden = [*story.others(NOT_WHOLE), *story.others((ConflictRule.EPOCH_TRANS,), Op.DELETE)]

    def builds(place: int) -> bool:
        rejected = story.whole.intersection(story.unanswered(place))
        return any(story.is_after_sync(earlier, place) for earlier in rejected)

    return _explains(story, filter(builds, hidden), About.CONTENT, About.EXCEPTIONS, About.REJECTS)


def dependent_is_counted(case: Case, _: Played) -> Explains | None:
    """A transaction builds on a row of one that is rejected."""
    story = Story.of(case)
    dependents = (
        place
        for commit in story.others_commits()
        for place in commit
        if story.whole.intersection(story.unanswered(place)).difference(commit)
    )
    return _explains(story, dependents, About.COUNT)


def delete_meets_unseen_delete(case: Case, _: Played) -> Explains | None:
    """Both clusters delete a row, neither having seen the other do it."""
    story = Story.of(case)
    return _explains(story, _second_deletes(story), About.EXCEPTIONS)


def update_follows_winning_delete(case: Case, _: Played) -> Explains | None:
    """The other cluster updates a row after a delete of its own that wins over an unseen one.

    An older update by the detecting cluster had brought the row back to it meanwhile.
    """
    story = Story.of(case)
    won = set(_second_deletes(story))
    updates = story.others(EPOCH2, Op.UPDATE)
    followers = (p for p in updates if won.intersection(story.unanswered(p)))
    return _explains(story, followers, *ALONE)


def answer_meets_newer_write(case: Case, _: Played) -> Explains | None:
    """The other cluster writes a row again after its write was judged and before it is told."""
    story = Story.of(case)

    def meets_answer(place: int) -> bool:
        is_judged = any(story.judged(earlier) < place for earlier in story.unanswered(place))
        return is_judged and story.told(place) < len(story.steps)

    return _explains(story, filter(meets_answer, story.others(EPOCH2)), *ALONE)


def insert_over_own_winner(case: Case, _: Played) -> Explains | None:
    """The other cluster inserts a row again that its winning insert holds at the hub.

    The delete over which that one won had reached it meanwhile, so the row was gone there.
    """
    story = Story.of(case)
    inserts = story.others(EPOCH2, Op.INSERT)
    won = set(inserts).difference(_losing_inserts(story))

    def is_over_own(place: int) -> bool:
        deletes = [
            story.told(word)
            for word in story.words(place, place, by_detecting=True)
            if story.write(word).op is Op.DELETE
        ]
        earlier = won.intersection(story.unanswered(place))
        return any(winner < told < place for winner in earlier for told in deletes)

    return _explains(story, filter(is_over_own, inserts), *ALONE)


def update_does_not_raise_its_column(case: Case, played: Played) -> Explains | None:
    """An update whose value is not above that of the row which its own cluster had."""
    story, hub = Story.of(case), played.world.hub
    rows = set()
    for change in (judged.arrived.change for judged in hub.judged):
        function = hub.topology.tables[change.table].function
        if change.op is Op.UPDATE and function.rule in RAISED and change.rid != _rid(story):
            values = (json.loads(i or "{}").get(function.column) for i in _images(change))
            before, after = ((value is not None, value) for value in values)
            if not after > before:
                rows.add(change.row)
    updates = (p for p in story.others(RAISED, Op.UPDATE) if story.write(p).row in rows)
    return _explains(story, updates, *ALONE)


def crossing_writes_are_told(case: Case, _: Played) -> Explains | None:
    """Both clusters wrote a row, neither having seen the other do it, and then both are told."""
    story = Story.of(case)
    writes, end = story.others(COLUMN_RULES), len(story.steps)
    told = {p: t for p in story.blocked.intersection(writes) if (t := story.answered(p)) < end}
    content = _explains(story, told, About.CONTENT)
    later = (p for p in writes if any(told.get(e, end) < p for e in story.earlier(p)))
    return _either(content, _explains(story, later, *ALONE))


def crossing_writes_of_no_function(case: Case, _: Played) -> Explains | None:
    """Both clusters wrote a row of a table without a function, neither knowing it of the other.

    What a later transaction writes there is a row of it at the one, and nothing at the other.
    """
    story = Story.of(case)
    crossing = story.blocked.intersection(story.others((ConflictRule.PASS,)))
    return _explains(story, crossing, About.CONTENT, About.REJECTS)


def write_in_the_epochs_that_bits_hide(case: Case, _: Played) -> Explains | None:
    """One cluster writes a row of which it had seen what the other wrote."""
    story = Story.of(case)
    seen = set[int]()
    for place in (place for commit in story.commits for place in commit):
        if story.function(place).bits is None:
            continue
        detects = story.write(place).cluster == story.detecting
        knows = story.judged if detects else story.told
        if any(knows(w) < place for w in story.words(place, place, by_detecting=not detects)):
            seen.add(place)
    return _explains(story, seen, *ALONE)


def row_written_twice_in_a_transaction(case: Case, _: Played) -> Explains | None:
    """One transaction of the other cluster writes a row more than once."""
    story = Story.of(case)
    rows = [[story.write(p).row for p in commit] for commit in story.others_commits()]
    commits = zip(story.others_commits(), rows, strict=True)
    twice = (p for c, of in commits for p in c if of.count(story.write(p).row) > 1)
    return _explains(story, twice, *WHOLE)


def _rid(story: Story) -> int:
    return CLUSTERS[story.detecting]


def _images(change: Change) -> tuple[str | None, str | None]:
    return change.before, change.after


def _explains(story: Story, seeds: Iterable[int], *abouts: About) -> Explains | None:
    """Account for what differs on the rows of such writes, from the first of each on."""
    since = story.touched_by(set(seeds))

    def explains(difference: Difference) -> bool:
        row, step = difference.row, difference.step
        if row not in since or step is None or difference.about not in abouts:
            return False
        return step >= since[row]

    return explains if since else None


def _either(one: Explains | None, other: Explains | None) -> Explains | None:
    both = [explains for explains in (one, other) if explains]
    return (lambda difference: any(each(difference) for each in both)) if both else None


def converged(case: Case, played: Played) -> str | None:
    """Both sides equal once all is delivered; every change judged once, every loser recorded."""
    world, detecting = played.world, case["detecting_cluster"]
    other = next(name for name in CLUSTERS if name != detecting)
    for source, target in [(other, detecting), (detecting, other)] * 2:
        exchange(world, Sync(source, target, {}), detecting)
    a, b = (world.replicas[rid].rows for rid in CLUSTERS.values())
    if a != b:
        return f"A and B differ: {sorted(a.items() ^ b.items())}"
    if a != {row: state.image for row, state in world.hub.rows.items() if state.exists}:
        return "the clusters are equal, but not what the hub has"
    written = sorted(csn for replica in world.replicas.values() for csn in replica.written)
    judged = world.hub.judged
    if written != sorted(each.arrived.change.csn for each in judged):
        return "not every change was judged once"
    if any(each.conflict is None and each.verdict is not Verdict.ACCEPTED for each in judged):
        return "a rejected change was not recorded as a conflict"
    return next(_unrecorded(world), None)


def _unrecorded(world: World) -> Iterator[str]:
    """The changes that were overwritten by who had not seen them, and are in no conflict."""
    last: dict[RowKey, tuple[int, Change]] = {}
    for hub_epoch, judged in world.hub.log:
        if not isinstance(judged, Judged) or judged.verdict is not Verdict.ACCEPTED:
            continue
        change = judged.arrived.change
        since, met = last.get(change.row, (0, None))
        last[change.row] = hub_epoch, change
        if met is None or met.rid == change.rid or (met.op is change.op is Op.DELETE):
            continue
        is_seen = since <= world.replicas[change.rid].written[change.csn]
        if not is_seen and not (judged.row_lost and judged.before.csn == met.csn):
            yield f"{change.csn} overwrote {met.csn} unseen, which was not recorded as a conflict"
