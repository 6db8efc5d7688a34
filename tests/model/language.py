"""A small language for histories: one sentence a line, run on any backend.

`#` starts a comment; the first lines describe the story. A change is named by the value it writes.
Every replica sends a hello before the first sentence after `given`, and all are level then.
"""

import json
import re
from collections.abc import Collection

from checkpoints.commit.faults import FaultPoint
from streaming.core.conflict.judge import Verdict
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import OnHidden, OnRefused
from streaming.core.records.record import Item, RangeItem, Reason, Update
from tests.model.backend import with_deletes, with_rows
from tests.model.hub import PureHub
from tests.model.post import Post
from tests.model.replica import Replica, name_of, row_of, value_of
from tests.model.sentences import STEPS, Make, Story, StoryError, claim, sentence
from tests.model.two_hubs import TwoHubs
from tests.model.world import ALL_EPOCHS, World, topology

HUB = "the hub"
OTHER_HUB = "the other hub"
LATER = " joins later"


def run(story: Story, line: str) -> None:
    """Run one sentence; the one that reads it most closely takes it."""
    found = [(match, step) for pattern, step in STEPS if (match := pattern.fullmatch(line))]
    if not found:
        raise StoryError(f"no step reads {line!r}; see tests/model/language.py")
    match, step = min(found, key=lambda one: sum(len(word) for word in one[0].groups()))
    step(story, **match.groupdict())


def play(text: str, make: Make) -> World:
    """Run a story from its first line to its last; the world as it is then."""
    story = Story(make)
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].strip()
        if words:
            try:
                run(story, words)
            except (AssertionError, LookupError) as error:
                raise StoryError(f"line {number}: {words}\n  {error!r}") from error
    return story.world


# -- the beginning --------------------------------------------------------------------------


@sentence("given {names*}")
def given(story: Story, names: str) -> None:
    """`given r1 r2 r3`: replicas that know each other; `r1(numbered)` gives its changes opnos.

    The database of `r1(unique)` lets one row stand in each table: all have the same email.

    `r1(packets)` is not reached by Kafka. `r1(delayed)` is sent what was committed 12 seconds ago.
    `r1(archive)` is sent no deletes.

    Behind them may stand the tables: `; t is EPOCH_TRANS; u is MAX(v), hidden from r3`. A row `k`
    is of table t, a row `u.k` of table u. `t is EPOCH, on_refused stop`: what follows a refusal.
    `t is EPOCH, not written by r3`: what r3 writes there is quarantined as `rights`.

    `t is EPOCH, r2 sees w1|w3`: of t it is shown the rows with these values only. `on_hidden
    quarantine`: what it writes on another row is in quarantine.

    `t is EPOCH, r2 lacks s`: t has a column s, which it is not sent.

    `; r3 joins later`: it is configured, and its agent was never started.
    """
    named, *parts = names.split("; ")
    later = [part.removesuffix(LATER) for part in parts if part.endswith(LATER)]
    tables = [part for part in parts if not part.endswith(LATER)]
    words = [re.fullmatch(r"(\w+)((?:\(\w+\))*)", word) for word in [*named.split(), *later]]
    replicas = {
        word[1]: Replica(
            word[1],
            rid,
            numbered="(numbered)" in word[2],
            is_unique="(unique)" in word[2],
            is_absent=word[0] in later,
        )
        for rid, word in enumerate(words, start=1)
        if word
    }
    functions: dict[str, str] = {}
    hidden: list[tuple[str, str]] = []
    on_refused: dict[str, OnRefused] = {}
    on_hidden: dict[str, OnHidden] = {}
    forbidden: list[tuple[str, str]] = []
    shown: dict[tuple[str, str], str] = {}
    lacking: list[tuple[str, str]] = []
    narrow: list[tuple[str, str]] = []
    for table in tables:
        name, _, rest = table.partition(" is ")
        functions[name], *others = rest.split(", ")
        for word, _, what in (other.rpartition(" ") for other in others):
            if word == "on_refused":
                on_refused[name] = OnRefused(what)
            elif word == "on_hidden":
                on_hidden[name] = OnHidden(what)
            elif word == "not written by":
                forbidden.append((name, what))
            elif word.endswith(" sees"):
                shown[name, word.removesuffix(" sees")] = _condition(what)
            elif word.endswith(" lacks"):
                lacking.append((name, word.removesuffix(" lacks")))
            elif word.endswith(" without"):
                narrow.append((name, word.removesuffix(" without")))
            else:
                hidden.append((name, what))
    wide = {name for name, _ in (*lacking, *narrow)}
    for replica in replicas.values():
        replica.wide = wide
        replica.lacking = {name for name, who in lacking if who == replica.name}
        replica.narrow = {name for name, who in narrow if who == replica.name}
        replica.is_altered = bool(replica.narrow)
    by_packets = [word[1] for word in words if word and "(packets)" in word[2]]
    made = topology(
        list(replicas.values()),
        functions or None,
        hidden,
        on_refused=on_refused,
        on_hidden=on_hidden,
        by_packets=by_packets,
        shown=shown,
        delayed=[word[1] for word in words if word and "(delayed)" in word[2]],
        lacking=lacking,
        wide=wide,
        archives=[word[1] for word in words if word and "(archive)" in word[2]],
    )
    posts = {name: Post() for name in by_packets}
    story.world = World(replicas, story.make(made), posts=posts)
    for name, who in forbidden:
        story.world.hub.may_write(replicas[who].rid, name, is_allowed=False)
    story.world.run_until_quiet()


# -- local transactions ---------------------------------------------------------------------


@sentence("{replica} writes {key} = {name}")
def writes(story: Story, replica: str, key: str, name: str) -> None:
    """A transaction of one change, committed at once."""
    story.world.write(replica, key, name)


@sentence("{replica} writes {key} = {name}, which is too {kind}")
def writes_uncarried(story: Story, replica: str, key: str, name: str, kind: str) -> None:
    """`long`: no record holds it, so its record says only how long it is; `odd`: of no type."""
    story.world.write(replica, key, name, kind=kind)


@sentence("{replica} deletes {key} as {name}")
def deletes(story: Story, replica: str, key: str, name: str) -> None:
    """A transaction of one delete, committed at once."""
    story.world.write(replica, key, name, delete=True)


@sentence("{replica} writes {key} = {name} in {label}")
def writes_in(story: Story, replica: str, key: str, name: str, label: str) -> None:
    """A change of a transaction, which its first write opens."""
    story.world.write(replica, key, name, transaction=label)
    story.primaries[label] = story.replica(replica).open[label].primary or ""


@sentence("{replica} writes {key} = {name} in {label}, which is too {kind}")
def writes_uncarried_in(
    story: Story, replica: str, key: str, name: str, label: str, kind: str
) -> None:
    """The same in a transaction, which its first write opens."""
    story.world.write(replica, key, name, transaction=label, kind=kind)
    story.primaries[label] = story.replica(replica).open[label].primary or ""


@sentence("{replica} deletes {key} as {name} in {label}")
def deletes_in(story: Story, replica: str, key: str, name: str, label: str) -> None:
    """A delete in a transaction, which its first write opens."""
    story.world.write(replica, key, name, delete=True, transaction=label)
    story.primaries[label] = story.replica(replica).open[label].primary or ""


@sentence("{replica} truncates {table} as {name}")
def truncates(story: Story, replica: str, table: str, name: str) -> None:
    """A transaction of one change that deletes all rows of a table, committed at once."""
    story.world.truncate(replica, table, name)


@sentence("{replica} truncates {table} as {name} in {label}")
def truncates_in(story: Story, replica: str, table: str, name: str, label: str) -> None:
    """A truncate in a transaction, which its first write opens."""
    story.world.truncate(replica, table, name, transaction=label)
    story.primaries[label] = story.replica(replica).open[label].primary or ""


@sentence("{replica} writes {key} = {name} with the CSN of {other}")
def writes_again(story: Story, replica: str, key: str, name: str, other: str) -> None:
    """A generator that went back gives a CSN for the second time."""
    story.world.write(replica, key, name, reuse=other)


@sentence("the clock of {replica} is {seconds} s ahead")
def is_ahead(story: Story, replica: str, seconds: str) -> None:
    """Of the clock by which it writes; its CSNs are from then on."""
    replica_ = story.replica(replica)
    replica_.skew_s, replica_.had_wrong_clock = int(seconds), True


@sentence("the records of {replica} are dated {seconds} s ahead")
def is_dated_ahead(story: Story, replica: str, seconds: str) -> None:
    """Its agent publishes by a clock that is wrong, too."""
    story.replica(replica).dated_s = int(seconds)
    story.world.renumbered.pop(replica, None)


@sentence("{replica} renumbers what nobody has seen")
def renumbers(story: Story, replica: str) -> None:
    """What the hub would refuse because a clock was ahead gets CSNs of the agent's clock."""
    new = story.world.renumber(replica)
    story.primaries |= {label: new[csn] for label, csn in story.primaries.items() if csn in new}


@sentence("{replica} commits {label}")
def commits(story: Story, replica: str, label: str) -> None:
    """The transaction's rows can be seen at its replica."""
    story.replica(replica).commit(label)


@sentence("{replica} aborts {label}")
def aborts(story: Story, replica: str, label: str) -> None:
    """The transaction never was."""
    story.replica(replica).abort(label)


@sentence("{replica} joins with {rows*}")
def joins_with(story: Story, replica: str, rows: str) -> None:
    """Its agent starts on a database that has rows, `k = x, j = y`, and never was a replica."""
    pairs = (row.split(" = ") for row in rows.split(", "))
    story.replica(replica).begin_snapshot(dict(pairs))
    story.world.hello(replica)
    story.world.publish_all(replica)


@sentence("{replica} joins empty")
def joins_empty(story: Story, replica: str) -> None:
    """Its agent starts on an empty database that never was a replica."""
    story.replica(replica).is_absent = False
    story.world.hello(replica)


@sentence("{replica} tells {count} rows of its snapshot")
def tells(story: Story, replica: str, count: str) -> None:
    """The next so many rows, in order of their keys."""
    story.world.tell(replica, int(count))
    story.world.publish_all(replica)


@sentence("{replica} ends its snapshot")
def ends_snapshot(story: Story, replica: str) -> None:
    """With the rows that it has not told yet, and all that it wrote meanwhile."""
    story.world.tell(replica)
    story.replica(replica).end_snapshot()
    if story.replica(replica).snapshot is not None:
        raise StoryError("an open transaction holds a row that is not told yet")
    story.world.publish_all(replica)


@sentence("{replica} will tell its rows")
def will_tell(story: Story, replica: str) -> None:
    """`slackwater agent --snapshot`: its next hello names a snapshot of all that it has."""
    story.replica(replica).begin_snapshot()


# -- agents ---------------------------------------------------------------------------------


@sentence("{replica} publishes")
def publishes(story: Story, replica: str) -> None:
    """Everything that is not known to be in its topic, in journal order."""
    story.world.publish_all(replica)


@sentence("{replica} publishes the first {count}")
def publishes_first(story: Story, replica: str, count: str) -> None:
    """The first so many lines that are not known to be in its topic."""
    story.world.publish_all(replica, int(count))


@sentence("{replica} publishes {things*}")
def publishes_these(story: Story, replica: str, things: str) -> None:
    """These, in this order: `w1, w2, the commit of T`; also those that it published before."""
    story.world.publish(replica, story.lines(replica, things))


@sentence("{replica} numbers {things*}")
def numbers(story: Story, replica: str, things: str) -> None:
    """These changes get their opnos in this order, before they are published in another."""
    for line in story.lines(replica, things):
        story.replica(replica).number(line)


@sentence("{replica} publishes {things*} under its old session")
def publishes_late(story: Story, replica: str, things: str) -> None:
    """An old agent that still runs publishes this; the journal does not record it."""
    one = story.replica(replica)
    for line in story.lines(replica, things):
        story.world.send(replica, f"{one.name}-{one.sessions - 1}", line.record)


@sentence("the topic of {replica} repeats {thing*}")
def repeats(story: Story, replica: str, thing: str) -> None:
    """The broker delivers a record once more, exactly as it was: the last one, if several are."""
    named, received = story.record(replica, thing), story.world.received[replica]
    story.world.repeat(replica, max(n for n, (_, one) in enumerate(received) if one == named))


@sentence("{replica} applies")
def applies(story: Story, replica: str) -> None:
    """It takes everything that was sent to it."""
    story.world.apply(replica)


@sentence("{replica} applies the first {count}")
def applies_first(story: Story, replica: str, count: str) -> None:
    """It takes so many records of its updates topic."""
    story.world.apply(replica, int(count))


@sentence("the next record to {replica} is lost")
def is_lost(story: Story, replica: str) -> None:
    """What it would take next never comes, however often its agent reads from the beginning."""
    if not story.world.lose(replica):
        raise StoryError(f"there is no record to {replica} that it has not taken")


@sentence("{replica} will refuse {key} {count} times")
def will_refuse(story: Story, replica: str, key: str, count: str) -> None:
    """Its database does not take the next so many items of this row."""
    story.replica(replica).will_refuse[key] = int(count)


@sentence("{replica} takes {key} again")
def takes_again(story: Story, replica: str, key: str) -> None:
    """Its database refuses this row no more."""
    story.replica(replica).will_refuse.pop(key, None)


@sentence("table {table} of {replica} loses its column")
def loses_column(story: Story, table: str, replica: str) -> None:
    """Its database refuses each row of the table, and its agent says what it lacks."""
    story.world.alter(replica, table, has_column=False)


@sentence("table {table} of {replica} gets its column")
def gets_column(story: Story, table: str, replica: str) -> None:
    """Its agent says that it lacks nothing there: what it refused for that goes on by itself."""
    story.world.alter(replica, table, has_column=True)


@sentence("{replica} takes everything")
def takes_everything(story: Story, replica: str) -> None:
    """Its database refuses nothing any more, its unique constraint is dropped."""
    story.replica(replica).will_refuse.clear()
    story.replica(replica).is_unique = False


@sentence("{replica} crashes")
def crashes(story: Story, replica: str) -> None:
    """Its agent dies; the database and its open transactions live on."""
    story.replica(replica).crash(database=False)


@sentence("{replica} ends")
def ends(story: Story, replica: str) -> None:
    """Its agent is told to end, and says goodbye."""
    story.world.end(replica)


@sentence("{replica} sends a heartbeat")
def sends_heartbeat(story: Story, replica: str) -> None:
    """Its agent is alive, and says how much it has not published."""
    story.world.beat(replica)


@sentence("the hub says that all are level")
def hub_says_level(story: Story) -> None:
    """It answers yes."""
    claim(story, story.world.hub.says_level(), expected=True)


@sentence("nobody can say that all are level")
def nobody_says_level(story: Story) -> None:
    """The hub does not answer yes."""
    claim(story, story.world.hub.says_level(), expected=False)


@sentence("{replica} crashes with its database")
def crashes_whole(story: Story, replica: str) -> None:
    """Its agent dies, and what is not committed is rolled back."""
    story.replica(replica).crash(database=True)


@sentence("{replica} crashes and forgets the last {count} it published")
def crashes_forgetful(story: Story, replica: str, count: str) -> None:
    """Its agent dies before it marked so many lines as published."""
    story.replica(replica).crash(database=False, forgotten=int(count))


@sentence("{replica} is backed up")
def is_backed_up(story: Story, replica: str) -> None:
    """Its database as it is now can be restored later; the newest backup counts."""
    story.replica(replica).back_up()


@sentence("{replica} is restored")
def is_restored(story: Story, replica: str) -> None:
    """Its database is what it was at the backup; its agent is not started yet."""
    story.replica(replica).restore()


@sentence("{replica} is emptied")
def is_emptied(story: Story, replica: str) -> None:
    """`slackwater reinit`: its agent is not started yet."""
    story.replica(replica).reinit()


@sentence("{replica} says hello")
def says_hello(story: Story, replica: str) -> None:
    """An agent starts a session, without publishing anything before."""
    story.world.hello(replica)


@sentence("{replica} says hello with the data of another hub")
def says_hello_of_another(story: Story, replica: str) -> None:
    """The same, with a position in another initial load."""
    story.world.hello(replica, ruv=Ruv("another"))


# -- packets --------------------------------------------------------------------------------


@sentence("{replica} exports")
def exports(story: Story, replica: str) -> None:
    """Its agent makes a packet of what it has published since the last one."""
    story.world.export(replica)


@sentence("the packets of {replica} arrive")
def packets_of_arrive(story: Story, replica: str) -> None:
    """At the hub, which imports those that continue what it has."""
    story.world.carry_up(replica)


@sentence("the packets to {replica} arrive")
def packets_to_arrive(story: Story, replica: str) -> None:
    """In its bay, where they are applied or wait."""
    story.world.carry_down(replica)


@sentence("the next packet of {replica} is lost")
def packet_of_is_lost(story: Story, replica: str) -> None:
    """The oldest that is under way to the hub."""
    post = story.world.posts[replica]
    del post.up[0]
    post.was_lost = True


@sentence("the next packet to {replica} is lost")
def packet_to_is_lost(story: Story, replica: str) -> None:
    """The oldest that is under way to the replica."""
    post = story.world.posts[replica]
    post.fetch(story.world.hub.packets_to(story.replica(replica).rid))
    del post.down[0]
    post.was_lost = True


@sentence("the packets of {replica} are swapped")
def packets_of_are_swapped(story: Story, replica: str) -> None:
    """The last that was sent arrives first; what is behind a hole waits."""
    post = story.world.posts[replica]
    late, post.up = post.up[:-1], post.up[-1:]
    story.world.carry_up(replica)
    post.up = late


@sentence("the packets to {replica} are swapped")
def packets_to_are_swapped(story: Story, replica: str) -> None:
    """The last that was written arrives alone, before the others."""
    post = story.world.posts[replica]
    post.fetch(story.world.hub.packets_to(story.replica(replica).rid))
    late, post.down = post.down[:-1], post.down[-1:]
    post.arrive()
    post.down = late


@sentence("the packets of {replica} are doubled")
def packets_of_are_doubled(story: Story, replica: str) -> None:
    """Each arrives twice."""
    post = story.world.posts[replica]
    post.up *= 2


@sentence("the packets to {replica} are doubled")
def packets_to_are_doubled(story: Story, replica: str) -> None:
    """Each arrives twice."""
    post = story.world.posts[replica]
    post.fetch(story.world.hub.packets_to(story.replica(replica).rid))
    post.down *= 2


@sentence("{replica} sends what was lost again, and so does the hub")
def lost_again(story: Story, replica: str) -> None:
    """`chepoch --actual` on either side, by what they know of each other."""
    story.world.send_lost_again(replica)


# -- the hub --------------------------------------------------------------------------------


@sentence("the operator aborts {label}")
def operator_aborts(story: Story, label: str) -> None:
    """`slackwater abort` of a transaction; the hub reads the command with its next batch."""
    story.world.hub.abort(story.primaries[label])


@sentence("the operator aborts the transaction of {name}")
def operator_aborts_of(story: Story, name: str) -> None:
    """`slackwater abort` of the transaction that this change is part of."""
    story.world.hub.abort(story.world.names[name].change.csn)


@sentence("the operator retries {replica}")
def operator_retries(story: Story, replica: str) -> None:
    """`slackwater conflicts retry --replica`: its refused rows are sent again."""
    story.world.hub.retry(story.replica(replica).rid)


@sentence("the topic of {replica} loses what is unread")
def loses_unread(story: Story, replica: str) -> None:
    """Its records that no committed batch has taken are deleted."""
    story.world.lose_unread(replica)


@sentence("the operator resumes {replica}")
def operator_resumes(story: Story, replica: str) -> None:
    """`slackwater resume`; the hub reads the command with its next batch."""
    story.world.hub.resume(story.replica(replica).rid)


@sentence("the operator pauses table {table} of {replica}")
def operator_pauses_table(story: Story, table: str, replica: str) -> None:
    """`slackwater pause --table`; the hub reads the command with its next batch."""
    story.world.hub.pause_table(story.replica(replica).rid, table, is_paused=True)


@sentence("the operator resumes table {table} of {replica}")
def operator_resumes_table(story: Story, table: str, replica: str) -> None:
    """`slackwater resume --table`; the hub reads the command with its next batch."""
    story.world.hub.pause_table(story.replica(replica).rid, table, is_paused=False)


@sentence("the operator sends {replica} at once what waits")
def operator_sends_now(story: Story, replica: str) -> None:
    """`slackwater resume --now`; the hub reads the command with its next batch."""
    story.world.hub.send_now(story.replica(replica).rid)


@sentence("the operator recovers {replica}")
def operator_recovers(story: Story, replica: str) -> None:
    """`slackwater recover`; the hub reads the command with its next batch."""
    story.world.hub.recover(story.replica(replica).rid)


@sentence("the operator retires {replica}")
def operator_retires(story: Story, replica: str) -> None:
    """`slackwater retire`; the hub reads the command with its next batch."""
    story.world.retire(replica)


@sentence("the operator readmits {replica}")
def operator_readmits(story: Story, replica: str) -> None:
    """`slackwater clean-ruv --readmit`: its rid is a new replica's from here on."""
    story.world.readmit(replica)


@sentence("the hub knows {replica}")
def hub_knows(story: Story, replica: str) -> None:
    """Its rid is in the hub's RUV."""
    claim(story, story.replica(replica).rid in story.world.hub.ruv().elements, expected=True)


@sentence("the hub does not know {replica}")
def hub_does_not_know(story: Story, replica: str) -> None:
    """Its rid is not in the hub's RUV."""
    claim(story, story.replica(replica).rid in story.world.hub.ruv().elements, expected=False)


@sentence("the hub marks {replica} away")
def marks_away(story: Story, replica: str) -> None:
    """As when it has acknowledged nothing in time; tracking starts at what it acknowledged."""
    story.world.hub.mark_away(story.replica(replica).rid)


@sentence("the hub purges")
def purges(story: Story) -> None:
    """Its next batch purges all of the changelog that nobody needs, however new it is."""
    hub = story.world.hub
    assert isinstance(hub, PureHub), "a hub with tables purges by age"
    hub.purge()


@sentence("the topic of {replica} refuses what it is sent")
def refuses_sent(story: Story, replica: str) -> None:
    """As when the hub's right to write it is taken away, until it takes all again."""
    story.world.hub.refuse_sent(story.replica(replica).rid, is_refused=True)


@sentence("the topic of {replica} takes what it is sent")
def takes_sent(story: Story, replica: str) -> None:
    """It was mended; the hub does not know that yet."""
    story.world.hub.refuse_sent(story.replica(replica).rid, is_refused=False)


@sentence("the hub finds that the topic of {replica} may be written")
def finds_writable(story: Story, replica: str) -> None:
    """It looked at its topics; its next batch brings the consumer back if that was away for it."""
    story.world.hub.find_writable(story.replica(replica).rid)


@sentence("the operator lowers the row of {replica} to its own word")
def operator_lowers_row(story: Story, replica: str) -> None:
    """`slackwater chepoch --actual`: all behind what it acknowledged is sent again."""
    story.world.hub.lower_row(story.replica(replica).rid, ALL_EPOCHS)


@sentence("the operator lowers the row of {replica} by {epochs}")
def operator_lowers_row_by(story: Story, replica: str, epochs: str) -> None:
    """`slackwater chepoch` with numbers: what the last hub epochs sent is sent again."""
    story.world.hub.lower_row(story.replica(replica).rid, int(epochs))


@sentence("the operator pauses {replica}")
def operator_pauses(story: Story, replica: str) -> None:
    """`slackwater pause`; the hub reads the command with its next batch."""
    story.world.hub.pause(story.replica(replica).rid)


@sentence("the operator resyncs {replica}")
def operator_resyncs(story: Story, replica: str) -> None:
    """`slackwater resync`: its end is fixed, and no page sent yet."""
    _resync(story, replica, is_full=False)


@sentence("the operator resyncs {replica} in full")
def operator_resyncs_in_full(story: Story, replica: str) -> None:
    """`slackwater resync --full`: all rows of all tables."""
    _resync(story, replica, is_full=True)


def _resync(story: Story, replica: str, *, is_full: bool) -> None:
    story.world.hub.resync(story.replica(replica).rid, is_full=is_full)
    _take(story, "nothing", None)


@sentence("the hub takes {what*} and sends {replica} a page")
def takes_and_pages(story: Story, what: str, replica: str) -> None:
    """The input is judged first, the page of the resync stands behind it."""
    _take(story, what, None, pages=(replica,))


@sentence("the hub takes {what*} and sends {replica} a page and is killed {point*}")
def takes_pages_and_dies(story: Story, what: str, replica: str, point: str) -> None:
    """The same, and it dies at a point of `checkpoints/commit/faults.py`."""
    _take(story, what, _point(point), pages=(replica,))


@sentence("the hub takes {what*}")
def takes(story: Story, what: str) -> None:
    """`all`, `nothing`, or so many records of each topic: `1 of r1, 2 of r2`."""
    _take(story, what, None)


@sentence("the hub takes {what*} and is killed {point*}")
def takes_and_dies(story: Story, what: str, point: str) -> None:
    """It dies at a point of `checkpoints/commit/faults.py`: `after the plan` is AFTER_PLAN."""
    _take(story, what, _point(point))


def _point(text: str) -> FaultPoint:
    return FaultPoint(text.replace(" the ", "_").replace(" ", "_"))


@sentence("the other hub takes {what*}")
def other_takes(story: Story, what: str) -> None:
    """The one that does not serve takes `all`, or so many records of each topic.

    With `all` it sends the next page of each resync, too.
    """
    world, counts = story.world, _counts(what)
    if counts is None:
        rids = [one.rid for one in world.replicas.values()]
        two_hubs(story).other.take(None, world.now_s * 1000, None, rids)
        return
    by_rid = {world.replicas[name].rid: n for name, n in counts.items()}
    two_hubs(story).other.take(by_rid, world.now_s * 1000, None)


@sentence("{replica} moves to the other hub")
def moves(story: Story, replica: str) -> None:
    """Its agent ends, and its successor reads the updates of the other hub."""
    one = story.replica(replica)
    two_hubs(story).there ^= {one.rid}
    one.crash(database=False)
    one.missing.clear()  # of the topic that it does not read any more
    story.world.hello(replica)


@sentence("the other hub serves")
def other_serves(story: Story) -> None:
    """From here on it is "the hub", and the one before is the other one."""
    two_hubs(story).swap()


def two_hubs(story: Story) -> TwoHubs:
    """The backend of a story of two hubs."""
    if not isinstance(story.world.hub, TwoHubs):
        raise StoryError("there is one hub")
    return story.world.hub


@sentence("the hub is backed up")
def hub_is_backed_up(story: Story) -> None:
    """Its state as it is now can be put back later; the newest backup counts."""
    story.world.hub.back_up()


@sentence("the hub is restored")
def hub_is_restored(story: Story) -> None:
    """Its state is put back to the backup; the topics are not."""
    story.world.hub.put_back(story.world.now_s * 1000)


@sentence("the hub stands still")
def hub_stands_still(story: Story) -> None:
    """It does not go on from its state, whatever the agents say."""
    claim(story, story.world.hub.stands_still(), expected=True)


@sentence("the operator recovers")
def operator_recovers_hub(story: Story) -> None:
    """`slackwater recover`, and the hub starts."""
    story.world.hub.recover_hub(story.world.now_s * 1000)


@sentence("the hub restarts")
def restarts(story: Story) -> None:
    """It starts again on its state, without the engine's own checkpoint."""
    story.world.hub.restart(story.world.now_s * 1000)


def _take(story: Story, what: str, point: FaultPoint | None, pages: Collection[str] = ()) -> None:
    before = story.world.hub.hub_epoch()
    story.world.take(_counts(what), point, pages)
    story.risen = story.world.hub.hub_epoch() - before


def _counts(what: str) -> dict[str, int] | None:
    """Replica -> how many records of its topic; None: all that there are."""
    if what == "all":
        return None
    parts = [] if what == "nothing" else [part.split(" of ") for part in what.split(", ")]
    return {replica: int(count) for count, replica in parts}


@sentence("everything settles")
def settles(story: Story) -> None:
    """Everybody does all there is to do, until nothing is left."""
    story.world.run_until_quiet()


# -- what is seen ---------------------------------------------------------------------------


@sentence("{key} is {value} at {place*}")
def row_is(story: Story, key: str, value: str, place: str) -> None:
    """`gone`: there is no such row. The place is a replica, `the hub` or `the other hub`."""
    claim(story, _values(story, place).get(key, "gone"), value)


@sentence("s of {key} is {value} at {place*}")
def column_is_at(story: Story, key: str, value: str, place: str) -> None:
    """`s of k is w1 at r1 hub`: the column that not everybody is sent; `absent`: no value."""
    for one in place.split():
        world = story.world
        rows = world.rows_of_hub() if one == "hub" else world.rows_of(one)
        claim(story, json.loads(rows[key]).get("s", "absent"), value)


@sentence("{key} is {value} everywhere")
def row_is_everywhere(story: Story, key: str, value: str) -> None:
    """At the hub and at every replica."""
    places = (HUB, *story.world.replicas)
    seen = {place: _values(story, place).get(key, "gone") for place in places}
    claim(story, seen, dict.fromkeys(places, value))


@sentence("all hold the same rows")
def same_rows(story: Story) -> None:
    """Every replica holds what the hub holds."""
    replicas = story.world.replicas
    expected = dict.fromkeys(replicas, _values(story, HUB))
    claim(story, {name: _values(story, name) for name in replicas}, expected)


@sentence("{name} is accepted")
def is_accepted(story: Story, name: str) -> None:
    """It was the row when it was judged."""
    claim(story, _fate(story, name), "accepted")


@sentence("{name} is adopted")
def is_adopted(story: Story, name: str) -> None:
    """A row of a snapshot that is equal to the hub's."""
    claim(story, _fate(story, name), "adopted")


@sentence("{name} of {replica} is {verdict}")
def told_row_is(story: Story, name: str, replica: str, verdict: str) -> None:
    """The verdict on a row of a snapshot, by its value."""
    claim(story, _fate(story, f"{name} of {replica}"), verdict)


@sentence("{name} is rejected")
def is_rejected(story: Story, name: str) -> None:
    """It lost, and is recorded in the conflicts."""
    claim(story, _fate(story, name), "rejected")


@sentence("{name} is overwritten unseen")
def is_overwritten(story: Story, name: str) -> None:
    """It was the row, and lost against a change that was concurrent with it."""
    csn = story.world.names[name].change.csn
    losers = [conflict.loser for conflict in story.world.hub.conflicts()]
    claim(story, (_fate(story, name), losers.count(csn)), ("accepted", 1))


@sentence("{name} is not judged")
def is_not_judged(story: Story, name: str) -> None:
    """It is not in the changelog."""
    claim(story, _fate(story, name), "not judged")


@sentence("{name} is quarantined as {reason}")
def is_quarantined(story: Story, name: str, reason: str) -> None:
    """It is in quarantine once, and not in the changelog, but for what is found by its row."""
    replica = next(r for r in story.world.replicas.values() if _wrote(story, r, name))
    reasons = story.world.reasons(replica.name, story.world.names[name].change)
    fate = Verdict.QUARANTINED if reason == Reason.HIDDEN else "not judged"
    claim(story, (reasons, _fate(story, name)), ([reason], fate))


@sentence("nobody has seen {name}")
def is_unseen(story: Story, name: str) -> None:
    """Neither the changelog nor an updates topic has it, whatever else they have."""
    csn, hub = story.world.names[name].change.csn, story.world.hub
    logged = [one.csn for one in hub.changelog() if one.csn == csn]
    topics = {r.name: hub.updates(r.rid) for r in story.world.replicas.values()}
    sent = [
        to
        for to, updates in topics.items()
        for one in updates
        if isinstance(one, Update)
        for i in one.items
        if isinstance(i, Item) and i.csn == csn
    ]
    claim(story, (logged, sent), ([], []))


@sentence("the quarantine holds {what*}")
def quarantine_holds(story: Story, what: str) -> None:
    """`nothing`, or the reasons in order of arrival at the hub: `late, late, ended`."""
    expected = [] if what == "nothing" else sorted(what.split(", "))
    claim(story, sorted(kept.reason for kept in story.world.hub.quarantine()), expected)


@sentence("there are {count} conflicts")
def conflicts(story: Story, count: str) -> None:
    """So many losers are recorded."""
    claim(story, len(story.world.hub.conflicts()), int(count))


@sentence("the hub epoch {verb}")
def hub_epoch(story: Story, verb: str) -> None:
    """`rises` or `stays`: what the last micro-batch did to it."""
    claim(story, "rises" if story.risen else "stays", verb)


@sentence("all are level")
def all_are_level(story: Story) -> None:
    """Every consumer's last position record has the hub's covers and RUV."""
    replicas = story.world.replicas
    claim(story, [r for r in replicas if not story.world.is_level(r)], [])


@sentence("{replica} lacks {keys*}")
def lacks(story: Story, replica: str, keys: str) -> None:
    """`nothing`, or the rows that are listed as refused there: `k1, k2`."""
    expected = set() if keys == "nothing" else set(keys.split(", "))
    claim(story, story.world.refused_at(replica), expected)


@sentence("uncarried at {replica}: {keys*}")
def is_uncarried(story: Story, replica: str, keys: str) -> None:
    """`nothing`, or the rows that are listed so, `k1, k2`; of a truncate the table."""
    expected = set() if keys == "nothing" else set(keys.split(", "))
    claim(story, story.world.uncarried_at(replica), expected)


@sentence("{replica} has saved {names*}")
def has_saved(story: Story, replica: str, names: str) -> None:
    """`nothing`, or what it kept of its rows that the hub overwrote or deleted: `w1, w2`."""
    saved = {value_of(one.image or "") for one in story.replica(replica).saved}
    claim(story, saved, set() if names == "nothing" else set(names.split(", ")))


@sentence("the operator drops what is uncarried")
def operator_drops(story: Story) -> None:
    """`slackwater quarantine drop` of every record of each uncarried row."""
    story.world.hub.drop_uncarried()


@sentence("{key} of {replica} becomes {name}, unseen")
def is_edited(story: Story, key: str, replica: str, name: str) -> None:
    """It is written, or deleted (`gone`), where no agent sees it."""
    story.replica(replica).edit_unseen(key, None if name == "gone" else name)


@sentence("the operator sets {key} of {replica} right")
def operator_sets_right(story: Story, key: str, replica: str) -> None:
    """`slackwater compare hub REPLICA --repair --source hub`, of one row."""
    story.world.hub.set_right(story.replica(replica).rid, row_of(key))


@sentence("the operator prefers {key} of {replica}")
def operator_prefers(story: Story, key: str, replica: str) -> None:
    """`slackwater compare hub REPLICA --repair --source REPLICA`, of one row."""
    story.world.prefer(replica, key)


@sentence("the operator undoes {name}")
def operator_undoes(story: Story, name: str) -> None:
    """`slackwater undo --transaction`, of the change of this name: with its whole transaction."""
    story.world.undo(name)


@sentence("the operator releases what is skewed")
def operator_releases(story: Story) -> None:
    """`slackwater quarantine release --reason skew --yes`."""
    story.world.hub.release(Reason.SKEW)


@sentence("the operator releases what was forbidden")
def operator_releases_forbidden(story: Story) -> None:
    """`slackwater quarantine release --reason rights --yes`."""
    story.world.hub.release(Reason.RIGHTS)


@sentence("the operator releases what was hidden")
def operator_releases_hidden(story: Story) -> None:
    """`slackwater quarantine release --reason hidden --yes`."""
    story.world.hub.release(Reason.HIDDEN)


@sentence("the hub does not know the column of {table}")
def does_not_know_column(story: Story, table: str) -> None:
    """Its configuration lacks the column of values; the hub takes all there is before."""
    _take(story, "all", None)
    story.world.hub.know_column(table, is_known=False)


@sentence("the hub knows the column of {table}")
def knows_column(story: Story, table: str) -> None:
    """A configuration that has the column is applied; the hub takes all there is before."""
    _take(story, "all", None)
    story.world.hub.know_column(table, is_known=True)


@sentence("what waits for a column goes on")
def goes_on(story: Story) -> None:
    """The hub looks for what waits for a column that its configuration has now."""
    story.world.hub.go_on()


@sentence("{replica} may write {table}")
def may_write(story: Story, replica: str, table: str) -> None:
    """The operator names the table in `writes` of the replica; see `_may_write`."""
    _may_write(story, replica, table, is_allowed=True)


@sentence("{replica} may not write {table}")
def may_not_write(story: Story, replica: str, table: str) -> None:
    """The operator takes the table out of `writes` of the replica; see `_may_write`."""
    _may_write(story, replica, table, is_allowed=False)


def _may_write(story: Story, replica: str, table: str, *, is_allowed: bool) -> None:
    """The hub takes all there is, ends, and starts again with the new configuration."""
    _take(story, "all", None)
    story.world.hub.may_write(story.replica(replica).rid, table, is_allowed=is_allowed)


@sentence("{replica} is sent {table} from now on")
def is_sent_table(story: Story, replica: str, table: str) -> None:
    """The hub ends, and starts again with a wider agreement; what is unread stays so."""
    sees_rows(story, replica, "all", table)


@sentence("{replica} sees {values} of {table} from now on")
def sees_rows(story: Story, replica: str, values: str, table: str) -> None:
    """The same with another condition: `w1|w3`, the rows with these values; `all`, all rows."""
    hub, condition = story.world.hub, "" if values == "all" else _condition(values)
    hub.reconfigure(with_rows(hub.topology, story.replica(replica).rid, table, condition))
    story.world.note_filters()


@sentence("{replica} is {what} archive from now on")
def is_archive(story: Story, replica: str, what: str) -> None:
    """The same with deletes that are not sent: `an` archive; or are: `no` archive."""
    hub, rid = story.world.hub, story.replica(replica).rid
    hub.reconfigure(with_deletes(hub.topology, rid, are_sent=what == "no"))
    story.world.note_filters()


def _condition(values: str) -> str:
    return f"v IN ({', '.join(map(repr, values.split('|')))})"


@sentence("{seconds} seconds pass")
def seconds_pass(story: Story, seconds: str) -> None:
    """Nothing else happens."""
    story.world.now_s += int(seconds)


@sentence("{hours} hours pass")
def hours_pass(story: Story, hours: str) -> None:
    """Of the right time; nothing else happens."""
    story.world.now_s += int(hours) * 3_600


@sentence("{replica} has refused {key} {count} times")
def has_refused(story: Story, replica: str, key: str, count: str) -> None:
    """So many attempts are recorded."""
    found = story.world.hub.refused().get((story.replica(replica).rid, row_of(key)))
    claim(story, found, int(count))


@sentence("{replica} was sent {count} items")
def was_sent(story: Story, replica: str, count: str) -> None:
    """So many items are in the records to it since the last such sentence."""
    claim(story, len(_sent(story, replica)), int(count))


@sentence("{replica} was sent {count} rows")
def was_sent_rows(story: Story, replica: str, count: str) -> None:
    """The same, ranges left out: how many a page needs is the hub's own affair."""
    rows = [one for one in _sent(story, replica) if isinstance(one, Item)]
    claim(story, len(rows), int(count))


def _sent(story: Story, replica: str) -> list[Item | RangeItem]:
    topic = story.world.hub.updates(story.replica(replica).rid)
    before, story.counted[replica] = story.counted.get(replica, 0), len(topic)
    return [item for one in topic[before:] if isinstance(one, Update) for item in one.items]


@sentence("{replica} has the state {state*}")
def has_state(story: Story, replica: str, state: str) -> None:
    """The agreement's state, as `status` shows it; its detail only where the sentence has one."""
    seen = story.world.hub.standing(story.replica(replica).rid).state
    claim(story, seen if ": " in state else seen.partition(": ")[0], state)


def _values(story: Story, place: str) -> dict[str, str]:
    if place == OTHER_HUB:
        rows = {name_of(*row): text for row, text in two_hubs(story).other.rows().items()}
    else:
        rows = story.world.rows_of_hub() if place == HUB else story.world.rows_of(place)
    return {key: value_of(text) for key, text in rows.items()}


def _wrote(story: Story, replica: Replica, name: str) -> bool:
    return any(write is story.world.names[name] for write in replica.writes)


def _fate(story: Story, name: str) -> str:
    judged = story.world.judgement(name)
    if judged is None:
        return "not judged"
    losers = [conflict.loser for conflict in story.world.hub.conflicts()]
    if judged.verdict == "rejected" and losers.count(judged.csn) != 1:
        raise StoryError(f"{name} is rejected, but {losers} are in the conflicts")
    return judged.verdict
