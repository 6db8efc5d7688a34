"""Tells random stories in the language of the scenarios, one step of one replica at a time.

So a history that breaks a law is a scenario already. A step that makes no sense at its place
is left out.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from random import Random

from hypothesis import strategies as st

from streaming.core.model.change import Change
from streaming.core.model.csn import rid_of
from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.model.table import OnRefused
from streaming.core.records.record import Abort, Applied, Commit, Hello, Record, Refused, Update
from tests.harness.fault_points import OF_TOPICS
from tests.model.hub import PureHub
from tests.model.language import run
from tests.model.replica import LONG, ODD, Replica, table_of
from tests.model.sentences import Story
from tests.model.two_hubs import TwoHubs
from tests.model.world import MERGE, World

REPLICAS = ("r1", "r2", "r3")
AWAY_UNWRITABLE = f"{AgreementStatus.CHANGE_TRACKING}: {AwayReason.UNWRITABLE}"
AWAY_DELAYED = f"{AgreementStatus.CHANGE_TRACKING}: {AwayReason.DELAYED}"
AWAY_PAUSED = f"{AgreementStatus.CHANGE_TRACKING}: {AwayReason.PAUSED}"
POINTS = OF_TOPICS
OPEN_TRANSACTIONS = 3
DAYS_S, YEARS_S, PASSED_HOURS = 30 * 3_600, 20 * 365 * 86_400, 36
"""How far a wrong clock is ahead, or behind, and after how long it was right."""

GOOD = {
    "write": 6,
    "delete": 2,
    "truncate": 1,
    "write_in_transaction": 3,
    "write_beside": 2,
    "commit": 3,
    "abort": 1,
    "publish": 6,
    "publish_some": 2,
    "repeat": 1,
    "apply": 5,
    "apply_some": 2,
    "lose_next": 4,
    "crash": 2,
    "crash_before_publishing": 2,
    "end_agent": 2,
    "beat": 2,
    "take": 7,
    "take_some": 3,
    "take_and_die": 1,
}
"""What happens to replicas whose agents follow the contract, and how often.

Of what is sent to them a record may get lost: then the next record shows that it is missing.
"""

REORDERS = {**GOOD, "publish_out_of_order": 3, "publish_under_old_session": 1}
"""The same with agents that publish out of order, or outlive their successors."""

REUSES = {**GOOD, "reuse": 2, "publish_under_old_session": 1}
"""The same with agents that give a CSN twice, or outlive their successors."""

BY_HAND = {**GOOD, "end_by_hand": 3, "end_anything_by_hand": 1}
"""The same with an operator who ends transactions, of which the agent may publish more."""

REFUSES = {**BY_HAND, "refuse": 3, "retry": 2}
RESUMES = {**REFUSES, "resume": 2}
"""The same with databases that do not take what is sent to them."""

ALTERS = {**GOOD, "lose_column": 3, "get_column": 3}
"""The same with tables that lack a column for a while, at each replica in its own time."""

UNCARRIED = {**BY_HAND, "write_uncarried": 5, "write_uncarried_in_transaction": 2, "drop": 1}
"""The same with values that nobody else can take, and an operator who drops some."""

COMPARED = {**BY_HAND, "edit_unseen": 4}
"""The same with rows that are changed where no agent sees it, and set right by an operator."""

FORBIDDEN = {**UNCARRIED, "allow": 4, "release_forbidden": 3}
"""The same with tables that not everybody may write, and an operator who allows and releases."""

CLOCKS = {
    **UNCARRIED,
    "set_clock": 5,
    "correct_clock": 3,
    "renumber": 3,
    "pass_time": 2,
    "release": 2,
}
"""The same with clocks that are wrong, agents that date anew what nobody has seen of what they
wrote, and an operator who releases the rest."""

EMPTIES = {**BY_HAND, "reinit": 3}
"""The same with databases that are emptied, perhaps written before their hello."""

LOSES_INPUT = {**EMPTIES, "lose_unread": 3, "recover": 5}
"""The same with topics that lose what the hub has not read, and an operator who recovers."""

LOSES = {**EMPTIES, "back_up": 3, "restore": 3}
"""The same with databases that are restored from a backup, perhaps written before their hello."""

AWAY = {
    **GOOD,
    "mark_away": 3,
    "order_resync": 3,
    "pause": 1,
    "lower_row": 2,
    "take_page": 8,
    "page_and_die": 1,
}
"""The same with consumers that are away, and come back by pages."""

TAKEN_OUT = {**AWAY, "retire": 4, "readmit": 6}
"""The same with replicas that are taken out for good, and new ones that get their rids."""

UNWRITABLE = {**AWAY, "refuse_sent": 3, "take_sent": 1, "find_writable": 3}
"""The same with topics that refuse what they are sent for a while, until the hub looks again."""

AWAY_AND_LOST = {**AWAY, **LOSES, **REFUSES}
"""The same with databases that are restored, emptied, or do not take what is sent to them."""

TELLS = {"join": 6, "tell": 3, "end_snapshot": 2, "tell_again": 1}
JOINS = {**AWAY, **LOSES, **TELLS}
"""The same with a replica that joins with rows of its own, and others that tell theirs again."""

PUTS_BACK = {**AWAY, **LOSES, "back_up_hub": 3, "put_back_hub": 3}
"""The same with a hub whose state is put back from a backup, and an operator who recovers."""

PURGES = {**PUTS_BACK, **REFUSES, **UNWRITABLE, **REUSES, "purge": 8, "pass_time": 3}
"""The same with a hub that purges, and consumers that are away for too long."""

UNDOES = {**AWAY, **LOSES, "undo": 4}
"""The same with an operator who undoes transactions, for everybody."""

REFILTERS = {**AWAY, **GOOD, "refilter": 4, "archive": 1}
"""The same with consumers that are shown other rows, or are archives, from now on."""

FEEDS = {
    **AWAY,
    **LOSES,
    "export": 6,
    "carry_up": 6,
    "carry_down": 6,
    "lose_packet": 4,
    "double_packets": 2,
    "swap_packets": 3,
    "send_lost_again": 2,
}
"""The same with a replica that is fed by packets, which are lost, doubled and swapped."""

MOVES = {**BY_HAND, **AWAY, **LOSES, "other_takes": 5, "move": 3, "other_serves": 1}
"""The same with two hubs on one set of topics, and replicas that move from one to the other."""

PAUSES_TABLES = {**AWAY_AND_LOST, "pause_table": 4, "resume_table": 4}
"""The same with an operator who has one table of an agreement send nothing for a while."""

DELAYS = {**PURGES, "wait": 8, "send_now": 2}
"""The same with a consumer that is sent what is old enough, or what an operator lets go."""

EVERYTHING = {
    **LOSES,
    **REORDERS,
    **REUSES,
    **REFUSES,
    **UNWRITABLE,
    **TELLS,
    **CLOCKS,
    **FORBIDDEN,
}
"""All at once."""

FUNCTIONS = (
    *(
        "EPOCH",
        "EPOCH(3)",
        "EPOCH_TRANS",
        "EPOCH_TRANS",
        "EPOCH_TRANS",
        "EPOCH2",
        "OLD(v)",
        "MAX(v)",
        "MAX_DELETE_WIN(v)",
    ),
    *("MAX_INS(v)", "MAX_DEL_WIN_INS(v)", "CSN", "PRIMARY(r1)", "PASS", MERGE),
)

Step = tuple[str, str, str, int]
"""(what happens, to which replica, on which key, a number that some steps look at)."""

LENGTH = 120


@dataclass(frozen=True, slots=True)
class Plot:
    """A story that was not run yet: its steps, and what the replicas and tables are like."""

    steps: Sequence[Step]
    skews: Sequence[int] = (0, 5, -5)
    numbered: bool = True
    tables: str = ""
    unique: frozenset[str] = frozenset()
    joins: bool = False
    by_packets: bool = False
    delayed: bool = False
    archive: bool = False


def random_steps(
    random: Random, weights: Mapping[str, int], length: int, all_keys: Sequence[Sequence[str]]
) -> Iterator[Step]:
    """Steps that collide: most stories leave out some of what can happen, and have few rows."""
    left = {name: weight for name, weight in weights.items() if random.random() < 0.9}
    actions, often = list(left or weights), list((left or weights).values())
    replicas = random.choice([["r1", "r2"], ["r1", "r1", "r2", "r3"], REPLICAS])
    keys = random.choice(all_keys)
    for _ in range(length):
        action = random.choices(actions, often)[0]
        yield action, random.choice(replicas), random.choice(keys), random.randint(1, 4)


KEYS = (["k1"], ["k1", "k1", "k2"], ["k1", "k2", "k3"])
KEYS_OF_TWO = (["k1", "u.k1"], ["k1", "k1", "u.k1"], ["k1", "k2", "u.k1", "u.k2"])


def _every(step: int, first: int) -> str:
    """Every so many of the values that a story may write, from one of the first on."""
    return "|".join(f"w{number}" for number in range(first % (step + 1), LENGTH, step + 1))


@st.composite
def tables(
    draw: st.DrawFn,
    *,
    acts: bool = False,
    filters: bool = False,
    columns: bool = False,
    narrow: bool = False,
) -> str:
    """Two tables, any function for each, and perhaps a replica that does not see one.

    `acts`: a refused row stops its agreement, or is sent again by itself. `filters`: replicas are
    shown half of the values. `columns`: some are not sent a column. `narrow`: some lack a column.
    """
    first, second = draw(st.tuples(st.sampled_from(FUNCTIONS), st.sampled_from(FUNCTIONS)))
    hidden = draw(st.sampled_from(["", "", ", hidden from r3"]))
    on_t = on_u = ""
    if acts:
        ways = st.sampled_from([f", on_refused {way}" for way in OnRefused])
        on_t, on_u = draw(st.tuples(ways, ways))
    if filters:
        some = _every(1, draw(st.integers(0, 1)))
        on_t += draw(st.sampled_from(["", ", on_hidden quarantine"]))
        on_t, on_u = (
            on_t + f", r2 sees {some}",
            on_u + draw(st.sampled_from(["", f", r1 sees {some}"])),
        )
    if columns:
        on_t, on_u = on_t + ", r2 lacks s", on_u + draw(st.sampled_from(["", ", r1 lacks s"]))
    if narrow:
        on_t, on_u = (
            on_t + ", r2 without s",
            on_u + draw(st.sampled_from([", r1 without s", ", r1 without s, r3 without s"])),
        )
    return f"; t is {first}{on_t}; u is {second}{on_u}{hidden}"


@st.composite
def plots(
    draw: st.DrawFn,
    weights: Mapping[str, int],
    *,
    several: bool = False,
    unique: bool = False,
    acts: bool = False,
    joins: bool = False,
    by_packets: bool = False,
    filters: bool = False,
    delayed: bool = False,
    columns: bool = False,
    narrow: bool = False,
    archive: bool = False,
) -> Plot:
    """Random stories that shrink: a seed makes the steps, Hypothesis chooses which are used.

    Steps that it draws one by one resemble each other: a hub without realignment survives hundreds
    of such stories, and a few dozen of these. `several`: two tables with functions of their own.
    `unique`: some databases have a unique constraint. `acts`: see `tables`. `joins`: the third
    replica joins later. `by_packets`: Kafka does not reach it. `filters`, `columns`, `narrow`: see
    `tables`. `delayed`: the third replica is. `archive`: it is sent no deletes.
    """
    seed = draw(st.integers(0, 2**32 - 1))
    kept = draw(st.lists(st.booleans(), min_size=LENGTH, max_size=LENGTH))
    keys = KEYS_OF_TWO if several else KEYS
    steps = zip(random_steps(Random(seed), weights, LENGTH, keys), kept, strict=True)
    return Plot(
        [step for step, is_told in steps if is_told],
        draw(st.permutations([0, 5, -5])),
        draw(st.booleans()),
        draw(tables(acts=acts, filters=filters, columns=columns, narrow=narrow)) if several else "",
        draw(st.frozensets(st.sampled_from(REPLICAS))) if unique else frozenset(),
        joins,
        by_packets,
        delayed,
        archive,
    )


@dataclass(slots=True)
class Storyteller:
    """Goes on with a story; `lines` is the story so far."""

    lines: list[str] = field(default_factory=list)
    story: Story = field(default_factory=lambda: Story(PureHub))
    written: int = 0
    has_backup: bool = False
    refusing: set[str] = field(default_factory=set)

    def run(self, plot: Plot) -> Iterator[World]:
        """Run a story to its end; the world after every step."""
        marks = {name: "(unique)" * (name in plot.unique) for name in REPLICAS}
        marks["r2"] += "(numbered)" * plot.numbered
        marks["r3"] += "(packets)" * plot.by_packets + "(delayed)" * plot.delayed
        marks["r3"] += "(archive)" * plot.archive
        named = [name + mark for name, mark in marks.items()]
        later = f"; {named.pop()} joins later" if plot.joins else ""
        self.add_sentence(f"given {' '.join(named)}{later}{plot.tables}")
        for name, skew_s in zip(REPLICAS, plot.skews, strict=True):
            self.replica(name).skew_s = skew_s
        for step in plot.steps:
            self.go_on(step)
            yield self.world
        self.end()

    @property
    def world(self) -> World:
        """The world as it is now."""
        return self.story.world

    def replica(self, name: str) -> Replica:
        """The replica of this name."""
        return self.world.replicas[name]

    def add_sentence(self, line: str) -> None:
        """Add a sentence to the story."""
        self.lines.append(line)
        run(self.story, line)

    def go_on(self, step: Step) -> None:
        """Tell the next step."""
        action, replica, key, number = step
        if self.replica(replica).is_absent and action != "join":
            return
        if not self.world.hub.is_up():
            self.add_sentence("the hub restarts")
        getattr(self, action)(replica, key, number)

    def end(self) -> None:
        """Nobody writes any more: every transaction is committed, and all comes to rest.

        Only the record after a lost one reveals it, so there is a last write, over nothing.
        """
        for name in REPLICAS:
            if self.replica(name).is_absent:
                self.add_sentence(f"{name} joins empty")
            for label in list(self.replica(name).open):
                self.add_sentence(f"{name} commits {label}")
        if any(self.replica(name).missing for name in REPLICAS):
            self.add_sentence(f"r1 writes last = {self._name()}")
        for name in REPLICAS:
            self.take_sent(name, "", 0)
        self._resume_tables()
        self._get_columns()
        if isinstance(self.world.hub, TwoHubs):
            for name in REPLICAS:
                if self.replica(name).rid in self.world.hub.there:
                    self.add_sentence(f"{name} moves to the other hub")
        self.add_sentence("everything settles")
        paused = [name for name in REPLICAS if self._state(name) == AWAY_PAUSED]
        for name in paused:
            self.add_sentence(f"the operator resyncs {name}")
        unwritable = [name for name in REPLICAS if self._state(name) == AWAY_UNWRITABLE]
        for name in unwritable:
            self.find_writable(name, "", 0)
        if paused or unwritable:
            self.add_sentence("everything settles")
        retired = [name for name in REPLICAS if self._is_retired(name)]
        for name in retired:
            self.readmit(name, "", 2)
        if retired:
            self.add_sentence("everything settles")
        stopped = [name for name in REPLICAS if self._is_stopped(name)]
        for name in stopped:
            self.recover(name, "", 2)
            self.reinit(name, "", 1)
        if stopped:
            self.add_sentence("everything settles")
        delayed = [name for name in REPLICAS if self._state(name) == AWAY_DELAYED]
        for name in delayed:
            self.send_now(name, "", 0)
        if delayed:
            self.add_sentence("everything settles")

    # -- local transactions -----------------------------------------------------------------

    def write(self, replica: str, key: str, _: int) -> None:
        """A replica writes a row."""
        one = self.replica(replica)
        if not (one.is_locked(key) or one.would_break(key)):
            self.add_sentence(f"{replica} writes {key} = {self._name()}")

    def delete(self, replica: str, key: str, _: int) -> None:
        """A replica deletes a row."""
        if not self.replica(replica).is_locked(key) and key in self.world.rows_of(replica):
            self.add_sentence(f"{replica} deletes {key} as {self._name()}")

    def truncate(self, replica: str, key: str, number: int) -> None:
        """A replica truncates a table, perhaps in its oldest transaction."""
        one, table = self.replica(replica), table_of(key)
        if one.is_table_locked(table):
            return
        label = next(iter(one.open), None) if number == 1 else None
        inside = f" in {label}" if label else ""
        self.add_sentence(f"{replica} truncates {table} as {self._name()}{inside}")

    def write_in_transaction(self, replica: str, key: str, number: int) -> None:
        """A replica goes on with its oldest transaction, or opens one."""
        one = self.replica(replica)
        label = next(iter(one.open), None)
        if label is None:
            self.write_beside(replica, key, number)
        elif one.would_break(key):
            return
        elif key in one.open[label].rows or not one.is_locked(key):
            self.add_sentence(f"{replica} writes {key} = {self._name()} in {label}")

    def write_beside(self, replica: str, key: str, _: int) -> None:
        """A replica opens a transaction, perhaps beside others."""
        one = self.replica(replica)
        is_free = not (one.is_locked(key) or one.would_break(key))
        if len(one.open) < OPEN_TRANSACTIONS and is_free:
            name = self._name()
            self.add_sentence(f"{replica} writes {key} = {name} in T{name}")

    def write_uncarried(self, replica: str, key: str, number: int) -> None:
        """A replica writes what nobody else can take."""
        one = self.replica(replica)
        if not (one.is_locked(key) or one.would_break(key)):
            what = f"{self._name()}, which is too {LONG if number % 2 else ODD}"
            self.add_sentence(f"{replica} writes {key} = {what}")

    def write_uncarried_in_transaction(self, replica: str, key: str, number: int) -> None:
        """The same in its oldest transaction; the others of it are uncarried too."""
        one = self.replica(replica)
        label = next(iter(one.open), None)
        if label is None or one.would_break(key):
            return
        if key in one.open[label].rows or not one.is_locked(key):
            what = f"{self._name()} in {label}, which is too {LONG if number % 2 else ODD}"
            self.add_sentence(f"{replica} writes {key} = {what}")

    def allow(self, replica: str, key: str, number: int) -> None:
        """An operator lets a replica write a table, or no more; r1, which writes last, may all."""
        if replica != "r1":
            self.add_sentence(f"{replica} may {'not ' * (number % 2)}write {table_of(key)}")

    def refilter(self, replica: str, key: str, number: int) -> None:
        """A replica is shown other rows of a table that it is sent, or all, with what is unread."""
        if self.world.sees(replica, key):
            values = "all" if number > 3 else _every(number, self.written + number)
            self.add_sentence(f"{replica} sees {values} of {table_of(key)} from now on")

    def archive(self, replica: str, _: str, number: int) -> None:
        """A replica is sent no deletes from now on, or is again."""
        self.add_sentence(f"{replica} is {'an' if number > 2 else 'no'} archive from now on")

    def release_forbidden(self, _: str, __: str, ___: int) -> None:
        """An operator releases what was forbidden; what still is stays where it is."""
        self.add_sentence("the operator releases what was forbidden")

    def set_clock(self, replica: str, _: str, number: int) -> None:
        """A clock is days ahead or years behind; perhaps its agent runs by a right one."""
        ahead_s = -YEARS_S if number == 4 else DAYS_S
        self.add_sentence(f"the clock of {replica} is {ahead_s} s ahead")
        if number != 1:
            self.add_sentence(f"the records of {replica} are dated {ahead_s} s ahead")

    def correct_clock(self, replica: str, key: str, number: int) -> None:
        """A clock is right again, perhaps before its agent has published what it made."""
        if number > 2:
            self.publish(replica, key, number)
        if self.replica(replica).skew_s or self.replica(replica).dated_s:
            self.add_sentence(f"the clock of {replica} is 0 s ahead")
            self.add_sentence(f"the records of {replica} are dated 0 s ahead")

    def renumber(self, replica: str, key: str, number: int) -> None:
        """An agent dates anew what no topic has, mostly what was written while it was down."""
        if number > 1:
            self.add_sentence(f"the clock of {replica} is {DAYS_S} s ahead")
            self.write_in_transaction(replica, key, number)
            self.write(replica, key, number)
            if number > 2:
                self.commit(replica, key, number)
                self.write(replica, key, number)
                self.back_up(replica, key, number)
            self.correct_clock(replica, key, 1)
        self.add_sentence(f"{replica} renumbers what nobody has seen")

    def pass_time(self, _: str, __: str, ___: int) -> None:
        """So much that what a clock gave that was ahead is in the past."""
        self.add_sentence(f"{PASSED_HOURS} hours pass")

    def release(self, _: str, __: str, ___: int) -> None:
        """An operator releases all that is skewed."""
        self.add_sentence("the operator releases what is skewed")

    def drop(self, _: str, __: str, ___: int) -> None:
        """An operator drops all that is uncarried."""
        self.add_sentence("the operator drops what is uncarried")

    def edit_unseen(self, replica: str, key: str, number: int) -> None:
        """A row is changed unseen; an operator compares, and one side or the other is right."""
        if self.replica(replica).is_locked(key) or not self.story.world.sees(replica, key):
            return
        name = "gone" if number > 3 else self._name()
        self.add_sentence(f"{key} of {replica} becomes {name}, unseen")
        if number == 1:
            self.write(replica, key, number)
        if number % 2:
            self.add_sentence(f"the operator prefers {key} of {replica}")
        else:
            self.add_sentence(f"the operator sets {key} of {replica} right")

    def undo(self, _: str, __: str, number: int) -> None:
        """An operator undoes one of the last transactions, or what the hub has of it."""
        names = list(self.world.names)
        if names:
            self.add_sentence(f"the operator undoes {names[-min(len(names), 2 * number)]}")

    def commit(self, replica: str, _: str, number: int) -> None:
        """A replica commits one of its transactions."""
        self._end_transaction(replica, "commits", number)

    def abort(self, replica: str, _: str, number: int) -> None:
        """A replica aborts one of its transactions."""
        self._end_transaction(replica, "aborts", number)

    def _end_transaction(self, replica: str, verb: str, number: int) -> None:
        labels = list(self.replica(replica).open)
        if labels:
            self.add_sentence(f"{replica} {verb} {labels[number % len(labels)]}")

    def _name(self) -> str:
        self.written += 1
        return f"w{self.written}"

    # -- topics -----------------------------------------------------------------------------

    def publish(self, replica: str, _: str, __: int) -> None:
        """An agent publishes all it has."""
        self.add_sentence(f"{replica} publishes")

    def publish_some(self, replica: str, _: str, number: int) -> None:
        """An agent publishes a part of what it has."""
        self.add_sentence(f"{replica} publishes the first {number}")

    def repeat(self, replica: str, _: str, number: int) -> None:
        """The broker delivers one of the last records once more."""
        if replica in self.world.posts:  # an outbox repeats nothing
            return
        received = self.world.received[replica]
        place = len(received) - number
        if place < self.world.begins.get(replica, 0):
            return
        record = received[place][1]
        thing = self._thing(replica, record)
        if thing and all(one != record for _, one in received[place + 1 :]):
            self.add_sentence(f"the topic of {replica} repeats {thing}")
        else:
            self.lines.append(f"# the topic of {replica} repeats {received[place]}")
            self.world.repeat(replica, place)

    def apply(self, replica: str, _: str, __: int) -> None:
        """A replica takes all that was sent to it."""
        self.add_sentence(f"{replica} applies")
        self._greet_again(replica)

    def apply_some(self, replica: str, _: str, number: int) -> None:
        """A replica takes a part of what was sent to it."""
        self.add_sentence(f"{replica} applies the first {number}")
        self._greet_again(replica)

    def lose_next(self, replica: str, key: str, number: int) -> None:
        """A record with rows gets lost; mostly its replica goes on with what follows it."""
        one = self.replica(replica)
        topic = self.world.hub.updates(one.rid)
        update = topic[one.inbox] if one.has_next(topic) else None
        if isinstance(update, Update) and update.items:
            self.add_sentence(f"the next record to {replica} is lost")
            if number > 1:
                self.apply(replica, key, number)

    def _greet_again(self, replica: str) -> None:
        """An agent that misses a record sends a hello."""
        if not self.replica(replica).is_up:
            self.add_sentence(f"{replica} says hello")

    def refuse(self, replica: str, key: str, number: int) -> None:
        """A database does not take the next items of a row."""
        self.add_sentence(f"{replica} will refuse {key} {number} times")

    def lose_column(self, replica: str, key: str, _: int) -> None:
        """A table lacks a column, so that it takes no row of others."""
        self.add_sentence(f"table {table_of(key)} of {replica} loses its column")

    def get_column(self, replica: str, key: str, _: int) -> None:
        """A table gets the column that it lacks, if it lacks one."""
        if table_of(key) in self.replica(replica).altered:
            self.add_sentence(f"table {table_of(key)} of {replica} gets its column")

    def _get_columns(self) -> None:
        """All get what they lack; the hub sends rows again only with the batch behind that.

        A schema that a topic repeats says of a table that it lacks nothing: its rows are sent and
        refused for ever, and nothing would settle.
        """
        altered = [(name, table) for name in REPLICAS for table in self.replica(name).altered]
        for name, table in sorted(altered):
            self.add_sentence(f"table {table} of {name} gets its column")
        for _ in altered:
            self.add_sentence("everything settles")

    def retry(self, replica: str, _: str, __: int) -> None:
        """An operator sends refused rows again."""
        self.add_sentence(f"the operator retries {replica}")

    def resume(self, replica: str, _: str, __: int) -> None:
        """An operator resumes an agreement, whether it stopped or not."""
        self.add_sentence(f"the operator resumes {replica}")

    def end_refusing(self) -> None:
        """Every database takes what it is sent, and is sent again what it refused."""
        for name in REPLICAS:
            self.add_sentence(f"{name} takes everything")
            self.add_sentence(f"the operator resumes {name}")
            self.add_sentence(f"the operator retries {name}")
        self.add_sentence("everything settles")

    def end_uncarried(self) -> None:
        """An operator drops every uncarried row, and its writer gets what the hub has."""
        self.add_sentence("the operator drops what is uncarried")
        self.add_sentence("everything settles")

    # -- crashes ----------------------------------------------------------------------------

    def crash(self, replica: str, key: str, number: int) -> None:
        """An agent dies, and its successor publishes what is left before its hello."""
        self._crash(replica, number)
        self.publish(replica, key, number)
        self.add_sentence(f"{replica} says hello")

    def crash_before_publishing(self, replica: str, _: str, number: int) -> None:
        """An agent dies, and its successor sends a hello at once."""
        self._crash(replica, number)
        self.add_sentence(f"{replica} says hello")

    def end_agent(self, replica: str, key: str, number: int) -> None:
        """An agent ends; perhaps somebody writes, or the hub works on, before the next one."""
        self.add_sentence(f"{replica} ends")
        if number > 2:
            self.write(replica, key, number)
        if number % 2:
            self.add_sentence("the hub takes all")
        if number != 4:
            self.add_sentence(f"{replica} says hello")

    def beat(self, replica: str, _: str, __: int) -> None:
        """An agent says that it is alive, and how much it has not published."""
        self.add_sentence(f"{replica} sends a heartbeat")

    def _crash(self, replica: str, number: int) -> None:
        """With its database, without having marked all that it published, or just so."""
        how = {1: " with its database", 2: " and forgets the last 2 it published"}
        self.add_sentence(f"{replica} crashes{how.get(number, '')}")

    def back_up(self, replica: str, _: str, __: int) -> None:
        """A database is backed up when nothing is open in it."""
        if not self.replica(replica).open:
            self.add_sentence(f"{replica} is backed up")

    def restore(self, replica: str, key: str, number: int) -> None:
        """A database is restored; perhaps somebody writes to it before its agent's hello."""
        if self.replica(replica).backup is None:
            return
        self.add_sentence(f"{replica} is restored")
        if number > 2:
            self.write(replica, key, number)
        self.add_sentence(f"{replica} says hello")

    def join(self, replica: str, key: str, number: int) -> None:
        """A replica joins with rows of its own, of which others may know."""
        if not self.replica(replica).is_absent:
            return
        one = self.replica(replica)
        rows = {key: self._name()}
        if number > 2 and not one.is_unique:
            rows |= {"k1": self._name(), "k2": self._name()}
        told = ", ".join(f"{k} = {value}" for k, value in rows.items())
        self.add_sentence(f"{replica} joins with {told}")

    def tell(self, replica: str, _: str, number: int) -> None:
        """A replica goes on with its snapshot."""
        if self.replica(replica).snapshot is not None:
            self.add_sentence(f"{replica} tells {number} rows of its snapshot")

    def end_snapshot(self, replica: str, _: str, __: int) -> None:
        """A replica ends its snapshot."""
        one = self.replica(replica)
        if one.snapshot is not None and not any(map(one.is_locked, one.to_tell)):
            self.add_sentence(f"{replica} ends its snapshot")

    def tell_again(self, replica: str, key: str, number: int) -> None:
        """An agent starts that tells all rows of its database, whoever wrote them."""
        self._crash(replica, number)
        self.add_sentence(f"{replica} will tell its rows")
        self.publish(replica, key, number)
        self.add_sentence(f"{replica} says hello")

    def reinit(self, replica: str, key: str, number: int) -> None:
        """A database is emptied; perhaps somebody writes to it before its agent's hello."""
        self.add_sentence(f"{replica} is emptied")
        if number > 2:
            self.write(replica, key, number)
        self.add_sentence(f"{replica} says hello")

    def lose_unread(self, replica: str, _: str, __: int) -> None:
        """Retention deletes what the hub has not read."""
        if self.world.hub.offset(self.replica(replica).rid) < len(self.world.received[replica]):
            self.add_sentence(f"the topic of {replica} loses what is unread")

    def recover(self, replica: str, key: str, number: int) -> None:
        """An operator gives up what was lost, and starts the agent, or empties the database."""
        if not self._state(replica).startswith("input_lost"):
            return
        if number == 1:
            self.reinit(replica, key, number)
        self.add_sentence(f"the operator recovers {replica}")
        if number > 2:
            self.add_sentence("the hub takes all")
        if number % 2:
            self.add_sentence(f"{replica} says hello")
        else:
            self.reinit(replica, key, number)

    def retire(self, replica: str, _: str, __: int) -> None:
        """An operator takes a replica out for good, but the last one."""
        if sum(not self._is_retired(name) for name in REPLICAS) > 1:
            self.add_sentence(f"the operator retires {replica}")
            self.add_sentence("the hub takes all")

    def readmit(self, replica: str, key: str, number: int) -> None:
        """Its rid is a new replica's, once the hub does not know it any more."""
        if not self._is_retired(replica) or self.replica(replica).rid in self._known():
            return
        self.add_sentence(f"the operator readmits {replica}")
        self.add_sentence("the hub takes all")
        if number % 2:
            self.add_sentence(f"{replica} says hello")
        else:
            self.reinit(replica, key, number)

    def _is_retired(self, replica: str) -> bool:
        return self._state(replica).startswith("retired")

    def _known(self) -> Collection[int]:
        return self.world.hub.ruv().elements

    def _is_stopped(self, replica: str) -> bool:
        """Return whether its input was lost and it has not started anew, told so or not."""
        is_lost = self._state(replica).startswith(("input_lost", "recovered"))
        return is_lost or self.replica(replica).is_told_to_stop

    def _state(self, replica: str) -> str:
        return self.world.hub.standing(self.replica(replica).rid).state

    # -- the hub ----------------------------------------------------------------------------

    def back_up_hub(self, _: str, __: str, ___: int) -> None:
        """Its state is copied."""
        self.add_sentence("the hub is backed up")
        self.has_backup = True

    def put_back_hub(self, replica: str, key: str, number: int) -> None:
        """Its state is put back; somebody may write before the operator recovers."""
        if not self.has_backup:
            return
        self.add_sentence("the hub is restored")
        if number == 1:
            self.write(replica, key, number)
            self.publish(replica, key, number)
        if self.world.hub.stands_still():
            self.add_sentence("the operator recovers")

    def take(self, _: str, __: str, ___: int) -> None:
        """The hub processes all there is."""
        self.add_sentence("the hub takes all")

    def take_some(self, replica: str, _: str, number: int) -> None:
        """The hub processes a few records of one replica, and one of each other."""
        counts = {name: number if name == replica else 1 for name in REPLICAS}
        self.add_sentence(
            f"the hub takes {', '.join(f'{n} of {name}' for name, n in counts.items())}"
        )

    def other_takes(self, replica: str, _: str, number: int) -> None:
        """The other hub processes a few records, or all that there are."""
        counts = ", ".join(f"{number if name == replica else 1} of {name}" for name in REPLICAS)
        self.add_sentence(f"the other hub takes {'all' if number == 1 else counts}")

    def move(self, replica: str, _: str, __: int) -> None:
        """The agent of a replica is started with the configuration of the other hub."""
        self.add_sentence(f"{replica} moves to the other hub")

    def other_serves(self, _: str, __: str, ___: int) -> None:
        """Who orders something orders it at the other hub from here on."""
        self.add_sentence("the other hub serves")

    def mark_away(self, replica: str, _: str, __: int) -> None:
        """A consumer acknowledges nothing in time; its next record brings it back.

        Packets have no time in which to be acknowledged.
        """
        if replica not in self.world.posts and self._state(replica) in (
            "in_sync",
            "catching_up",
            "resync",
        ):
            self.add_sentence(f"the hub marks {replica} away")

    def purge(self, _: str, __: str, ___: int) -> None:
        """What all have goes from the changelog, and what who is away too long lacks."""
        self.add_sentence("the hub purges")

    def refuse_sent(self, replica: str, _: str, __: int) -> None:
        """A consumer's topic takes nothing for a while."""
        self.refusing.add(replica)
        self.add_sentence(f"the topic of {replica} refuses what it is sent")

    def take_sent(self, replica: str, _: str, __: int) -> None:
        """It takes everything again."""
        if replica in self.refusing:
            self.refusing.discard(replica)
            self.add_sentence(f"the topic of {replica} takes what it is sent")

    def find_writable(self, replica: str, _: str, number: int) -> None:
        """The hub looks at its topics: who is away because its topic refused comes back.

        The topic is mended before, perhaps, or refuses again before the hub sends anything.
        """
        if self._state(replica) != AWAY_UNWRITABLE:
            return
        self.take_sent(replica, "", 0)
        self.add_sentence(f"the hub finds that the topic of {replica} may be written")
        if number == 1:
            self.refuse_sent(replica, "", 0)

    def export(self, replica: str, _: str, __: int) -> None:
        """An agent makes a packet."""
        if replica in self.world.posts:
            self.add_sentence(f"{replica} exports")

    def carry_up(self, replica: str, _: str, __: int) -> None:
        """The packets of a replica come to the hub."""
        if replica in self.world.posts:
            self.add_sentence(f"the packets of {replica} arrive")

    def carry_down(self, replica: str, _: str, __: int) -> None:
        """The packets of the hub come to a replica."""
        if replica in self.world.posts:
            self.add_sentence(f"the packets to {replica} arrive")

    def lose_packet(self, replica: str, _: str, number: int) -> None:
        """The oldest that is under way is lost."""
        if way := self._way(replica, number):
            self.add_sentence(f"the next packet {way} {replica} is lost")

    def double_packets(self, replica: str, _: str, number: int) -> None:
        """All that are under way arrive twice."""
        if way := self._way(replica, number):
            self.add_sentence(f"the packets {way} {replica} are doubled")

    def swap_packets(self, replica: str, _: str, number: int) -> None:
        """The last that is under way arrives before the others."""
        if way := self._way(replica, number):
            self.add_sentence(f"the packets {way} {replica} are swapped")

    def _way(self, replica: str, number: int) -> str | None:
        """To or of a replica, if a packet is under way there."""
        post = self.world.posts.get(replica)
        if post is None:
            return None
        written = self.world.hub.packets_to(self.replica(replica).rid)
        is_down = post.down or post.fetched < len(written)
        return ("of" if post.up else None) if number % 2 else ("to" if is_down else None)

    def send_lost_again(self, replica: str, _: str, __: int) -> None:
        """Operators on both sides send again what the other has not."""
        if replica in self.world.posts:
            self.add_sentence(f"{replica} sends what was lost again, and so does the hub")

    def pause(self, replica: str, _: str, __: int) -> None:
        """An operator pauses a consumer."""
        self.add_sentence(f"the operator pauses {replica}")

    def wait(self, _: str, __: str, number: int) -> None:
        """So long that what is delayed becomes due, or a part of it."""
        self.add_sentence(f"{4 * number} seconds pass")
        self.add_sentence("the hub takes nothing")

    def pause_table(self, replica: str, key: str, _: int) -> None:
        """An operator pauses a table of a consumer, unless it is the only one that it is sent."""
        self.add_sentence(f"the operator pauses table {table_of(key)} of {replica}")

    def resume_table(self, replica: str, key: str, _: int) -> None:
        """An operator resumes a table of a consumer, paused or not."""
        self.add_sentence(f"the operator resumes table {table_of(key)} of {replica}")

    def _resume_tables(self) -> None:
        for name, tables in dict(self.world.hub.paused_tables()).items():
            for table in sorted(tables):
                self.add_sentence(f"the operator resumes table {table} of {name}")

    def send_now(self, replica: str, _: str, __: int) -> None:
        """An operator lets go what waits, if anything does."""
        self.add_sentence(f"the operator sends {replica} at once what waits")

    def lower_row(self, replica: str, _: str, number: int) -> None:
        """An operator sends again what was sent, perhaps in the midst of a resync."""
        how = "to its own word" if number == 1 else f"by {number}"
        self.add_sentence(f"the operator lowers the row of {replica} {how}")

    def order_resync(self, replica: str, _: str, number: int) -> None:
        """An operator orders a resync, of everything perhaps."""
        in_full = " in full" if number == 1 else ""
        self.add_sentence(f"the operator resyncs {replica}{in_full}")

    def take_page(self, replica: str, _: str, number: int) -> None:
        """The hub sends a page of a resync, if there is one, perhaps behind some input."""
        if self._state(replica) == "resync":
            what = {1: "nothing", 2: f"1 of {replica}"}.get(number, "all")
            self.add_sentence(f"the hub takes {what} and sends {replica} a page")

    def page_and_die(self, replica: str, _: str, number: int) -> None:
        """The hub is killed in a micro-batch that sends a page."""
        if self._state(replica) == "resync":
            point = POINTS[(len(self.lines) + number) % len(POINTS)].replace("_", " ")
            sentence = f"the hub takes all and sends {replica} a page and is killed {point}"
            self.add_sentence(sentence)

    def take_and_die(self, _: str, __: str, number: int) -> None:
        """The hub is killed in a micro-batch, at any of its points."""
        point = POINTS[(len(self.lines) + number) % len(POINTS)].replace("_", " ")
        self.add_sentence(f"the hub takes all and is killed {point}")

    def end_by_hand(self, replica: str, _: str, number: int) -> None:
        """An operator ends a transaction that the hub knows to be open.

        Perhaps its replica commits it all the same, and writes over it.
        """
        one = self.replica(replica)
        labels = list(one.open)
        if not labels:
            return
        label = labels[number % len(labels)]
        key = next(iter(one.open[label].rows))
        self.add_sentence(f"{replica} publishes")
        self.add_sentence("the hub takes all")
        self.add_sentence(f"the operator aborts {label}")
        if number > 2:
            self.add_sentence("the hub takes all")
            self.add_sentence(f"{replica} commits {label}")
            self.write(replica, key, number)
            self.add_sentence(f"{replica} publishes")
            self.add_sentence("the hub takes all")

    def end_anything_by_hand(self, replica: str, _: str, number: int) -> None:
        """An operator names one of a replica's last transactions, whatever became of it."""
        rid = self.replica(replica).rid
        primaries = self.story.primaries.items()
        labels = [label for label, primary in primaries if rid_of(primary) == rid]
        if number <= len(labels):
            self.add_sentence(f"the operator aborts {labels[-number]}")

    # -- agents that break the contract -----------------------------------------------------

    def publish_out_of_order(self, replica: str, _: str, number: int) -> None:
        """An agent publishes a line before the ones that stand before it in its journal.

        But for a `refused`: what was written without a row, and comes before the hub is told so,
        looks as if it had seen the row. Nobody can tell.
        """
        waiting = self.replica(replica).unpublished()
        lines = [*takewhile(lambda one: not isinstance(one.record, Refused), waiting)][1:]
        line = lines[number % len(lines)] if lines else None
        name = self._thing(replica, line.record) if line else None
        if line and name and isinstance(line.record, Change):
            self.add_sentence(f"{replica} publishes {name}")
        elif line and isinstance(line.record, Applied):
            self.lines.append(f"# {replica} publishes {line.record} alone")
            self.world.publish(replica, [line])

    def reuse(self, replica: str, key: str, number: int) -> None:
        """A generator gives a CSN that is in the topic for the second time."""
        one = self.replica(replica)
        reached = [write for write in one.writes if write.line.reached]
        mine = [name for name, write in self.world.names.items() if write in reached]
        mine = [name for name in mine if " " not in name]  # a row of a snapshot is no write
        if number <= len(mine) and not (one.is_locked(key) or one.would_break(key)):
            again = mine[-number]
            self.add_sentence(f"{replica} writes {key} = {self._name()} with the CSN of {again}")

    def publish_under_old_session(self, replica: str, _: str, __: int) -> None:
        """An old agent still runs, and publishes what the new one will publish again."""
        lines = self.replica(replica).unpublished()
        is_of_rows = lines and isinstance(lines[0].record, Change | Commit | Abort)
        if is_of_rows and (thing := self._thing(replica, lines[0].record)):
            self.add_sentence(f"{replica} publishes {thing} under its old session")

    def _thing(self, replica: str, record: Record) -> str | None:
        """What a record is called in a story; None: it has no name, or is of an old backup."""
        match record:
            case Change():
                named = self.world.names.items()
                return next((name for name, write in named if write.change == record), None)
            case Commit(prim_csn=primary) | Abort(prim_csn=primary):
                labels = [label for label, p in self.story.primaries.items() if p == primary]
                kind = type(record).__name__.lower()
                return f"the {kind} of {labels[0]}" if labels else None
            case Hello() if record == self.story.record(replica, "its hello"):
                return "its hello"
            case _:
                return None
