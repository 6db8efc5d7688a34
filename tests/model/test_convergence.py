"""Whatever happens, in whatever order: all replicas come to the same rows, and nothing is lost."""

from collections.abc import Callable, Sequence

from hypothesis import example, given, note

from tests.harness.examples import examples
from tests.model.hub import PureHub
from tests.model.laws import (
    ALWAYS,
    AT_REST,
    check_nothing_is_refused,
    check_nothing_is_uncarried,
    check_transactions_are_whole,
    check_yes_is_true,
)
from tests.model.sentences import Make, Story
from tests.model.storyteller import (
    ALTERS,
    AWAY,
    AWAY_AND_LOST,
    BY_HAND,
    CLOCKS,
    COMPARED,
    DELAYS,
    EMPTIES,
    EVERYTHING,
    FEEDS,
    FORBIDDEN,
    GOOD,
    JOINS,
    LOSES,
    LOSES_INPUT,
    MOVES,
    PAUSES_TABLES,
    PURGES,
    PUTS_BACK,
    REFILTERS,
    REFUSES,
    REORDERS,
    RESUMES,
    REUSES,
    TAKEN_OUT,
    UNCARRIED,
    UNDOES,
    UNWRITABLE,
    Plot,
    Storyteller,
    plots,
)
from tests.model.two_hubs import TwoHubs
from tests.model.world import World

FIXED = examples(share=1, is_fixed=True)
"""The same stories of each kind in every run; others, and many more, in a deep one."""


@FIXED
@given(plots(GOOD))
def test_replicas_converge(plot: Plot) -> None:
    """Agents follow the contract; they, the hub and the topics stop, die and repeat anywhere."""
    hold(plot, (*AT_REST, check_transactions_are_whole))


@FIXED
@given(plots(REORDERS))
def test_replicas_converge_though_agents_publish_out_of_order(plot: Plot) -> None:
    """What comes late is kept aside, and its row is taken back where it was written."""
    hold(plot, AT_REST)


@FIXED
@given(plots(REUSES))
def test_replicas_converge_though_agents_give_a_csn_twice(plot: Plot) -> None:
    """The second change is kept aside, and its row is taken back where it was written."""
    hold(plot, AT_REST)


@FIXED
@given(plots(BY_HAND))
def test_replicas_converge_though_an_operator_ends_transactions(plot: Plot) -> None:
    """Whether the replica commits, aborts or forgets them: what the hub ended holds nowhere."""
    hold(plot, (*AT_REST, check_transactions_are_whole))


@FIXED
@given(plots({**BY_HAND, **REORDERS, **REUSES}))
def test_replicas_converge_whatever_an_operator_and_agents_do(plot: Plot) -> None:
    """All at once: what is late or reused may be part of what was ended by hand."""
    hold(plot, AT_REST)


@FIXED
@given(plots(BY_HAND, several=True))
def test_replicas_converge_under_any_functions(plot: Plot) -> None:
    """Several functions at once, transactions over their tables, a replica that sees one only."""
    hold(plot, AT_REST)


@FIXED
@given(plots({**UNCARRIED, **AWAY}, several=True))
def test_replicas_differ_only_in_rows_that_are_listed_as_uncarried(plot: Plot) -> None:
    """A user's write is never destroyed; once all is dropped or written again all are equal."""
    hold(plot, AT_REST)


@FIXED
@given(plots(COMPARED, several=True))
def test_replicas_converge_though_rows_are_edited_unseen(plot: Plot) -> None:
    """Whichever side an operator takes for right, and whatever was written meanwhile."""
    hold(plot, AT_REST)


@FIXED
@given(plots({**FORBIDDEN, **AWAY}, several=True))
def test_replicas_differ_only_in_rows_that_were_forbidden(plot: Plot) -> None:
    """A forbidden write stays at its writer until it is released to all, or dropped."""
    hold(plot, AT_REST)


@FIXED
@given(plots({**CLOCKS, **AWAY}, several=True))
def test_replicas_converge_though_clocks_are_wrong(plot: Plot) -> None:
    """No write is lost, and nobody is dragged along; new CSNs, or a release, bring it to all."""
    hold(plot, AT_REST)


@FIXED
@given(plots(EMPTIES, several=True))
def test_replicas_converge_though_databases_are_emptied(plot: Plot) -> None:
    """`slackwater reinit` at any time: everything comes back, and nothing is overwritten unseen."""
    hold(plot, AT_REST)


@FIXED
@given(plots(LOSES_INPUT, several=True))
def test_replicas_converge_though_topics_lose_input(plot: Plot) -> None:
    """What nobody read is lost; everything else holds everywhere once the replica starts anew."""
    hold(plot, (*AT_REST, check_transactions_are_whole))


GIVES_A_LOST_CSN_AGAIN = Plot(
    steps=[
        ("write", "r1", "u.k1", 2),
        ("publish_some", "r1", "u.k1", 2),
        ("take", "r1", "k2", 4),
        ("apply_some", "r3", "u.k2", 4),
        ("back_up", "r3", "u.k1", 2),
        ("truncate", "r3", "u.k1", 2),
        ("crash", "r3", "u.k1", 3),
        ("restore", "r3", "k1", 4),
    ],
    skews=[0, 5, -5],
    numbered=False,
    tables="; t is EPOCH; u is EPOCH",
)
"""A database whose clock is behind is restored, and writes before its agent is there."""


@FIXED
@given(plots(LOSES, several=True))
@example(GIVES_A_LOST_CSN_AGAIN)
def test_replicas_converge_though_databases_are_restored(plot: Plot) -> None:
    """What was lost comes back, and nobody overwrites it unseen meanwhile."""
    hold(plot, AT_REST)


@FIXED
@given(plots(REFUSES, several=True, unique=True))
def test_replicas_differ_only_in_rows_that_are_listed_as_refused(plot: Plot) -> None:
    """Nobody stops, nothing differs in silence, nothing is overwritten unseen; a retry repairs."""
    hold(plot, AT_REST)


@FIXED
@given(plots(ALTERS, several=True, unique=True))
def test_replicas_converge_though_tables_lack_a_column_for_a_while(plot: Plot) -> None:
    """What was refused for it goes on by itself, without an operator's word."""
    hold(plot, AT_REST)


@FIXED
@given(plots({**ALTERS, **AWAY}, several=True, narrow=True))
def test_replicas_converge_though_rows_are_written_without_a_column(plot: Plot) -> None:
    """Its value loses as the row does that it was written with, and holds nowhere then."""
    hold(plot, AT_REST)


@FIXED
@given(plots({**EVERYTHING, **ALTERS}, several=True, unique=True, narrow=True))
def test_replicas_converge_though_rows_lack_a_column_whatever_happens(plot: Plot) -> None:
    """Columns that come later beside restores, resyncs, snapshots, truncates and refused rows."""
    hold(plot, AT_REST)


TRUNCATED_BEHIND_A_COPY = Plot(
    steps=[
        ("write", "r2", "k1", 2),
        ("publish", "r2", "k1", 3),
        ("take", "r3", "k1", 2),
        ("order_resync", "r1", "u.k1", 3),
        ("truncate", "r2", "u.k1", 1),
        ("crash", "r2", "u.k1", 2),
        ("end_agent", "r1", "k1", 3),
        ("take_page", "r1", "u.k1", 3),
        ("take_page", "r1", "k1", 1),
        ("apply", "r1", "u.k1", 4),
        ("truncate", "r1", "u.k1", 1),
    ],
    skews=[0, 5, -5],
    numbered=False,
    tables="; t is EPOCH; u is EPOCH",
    unique=frozenset(),
    joins=False,
)
"""A replica has seen a truncate by a copy of the table's keys, and truncates it again."""


@FIXED
@given(plots(AWAY, several=True))
@example(TRUNCATED_BEHIND_A_COPY)
def test_replicas_converge_though_consumers_are_away(plot: Plot) -> None:
    """They come back by pages and full copies, cut off anywhere, and write meanwhile."""
    hold(plot, (*AT_REST, check_transactions_are_whole))


@FIXED
@given(plots(UNWRITABLE, several=True))
def test_replicas_converge_though_topics_refuse_what_they_are_sent(plot: Plot) -> None:
    """Nothing is sent behind a hole: what was refused is brought by a resync."""
    hold(plot, (*AT_REST, check_transactions_are_whole))


@FIXED
@given(plots(AWAY_AND_LOST, several=True, unique=True))
def test_replicas_converge_though_who_is_away_loses_state(plot: Plot) -> None:
    """A resync of a database that was put back, emptied, or refuses rows."""
    hold(plot, AT_REST)


@FIXED
@given(plots(JOINS, several=True, unique=True, joins=True))
def test_replicas_converge_though_one_joins_with_rows(plot: Plot) -> None:
    """Rows that others have are adopted or in conflict; nothing is sent back as an echo."""
    hold(plot, AT_REST)


@FIXED
@given(plots({**AWAY, **GOOD}, several=True, filters=True))
def test_replicas_hold_exactly_the_rows_that_they_are_shown(plot: Plot) -> None:
    """Rows come and go by writes of whoever has them, and of whoever does not see them."""
    hold(plot, (*AT_REST, check_transactions_are_whole))


@FIXED
@given(plots({**EVERYTHING, "refilter": 1}, several=True, unique=True, filters=True))
def test_replicas_hold_the_rows_that_they_are_shown_whatever_happens(plot: Plot) -> None:
    """A filter beside restores, resyncs, truncates, refused rows and hubs that are put back."""
    hold(plot, AT_REST)


@FIXED
@given(plots(REFILTERS, several=True, filters=True))
def test_replicas_hold_the_rows_that_they_are_shown_from_now_on(plot: Plot) -> None:
    """A filter becomes wider, narrower or another, while changes are under way and hubs die."""
    hold(plot, (*AT_REST, check_transactions_are_whole))


@FIXED
@given(plots({**AWAY, **GOOD}, several=True, filters=True, archive=True))
def test_an_archive_holds_the_rows_that_it_is_shown(plot: Plot) -> None:
    """It writes, too: rows that others have deleted since, among those that it is shown."""
    hold(plot, (*AT_REST, check_transactions_are_whole))


@FIXED
@given(plots(EVERYTHING, several=True, unique=True, archive=True))
def test_an_archive_holds_the_rows_whatever_happens(plot: Plot) -> None:
    """An archive beside restores, resyncs, truncates, refused rows and hubs that are put back."""
    hold(plot, AT_REST)


@FIXED
@given(plots(UNDOES, several=True))
def test_replicas_converge_though_an_operator_undoes_what_they_wrote(plot: Plot) -> None:
    """What others have written since stays, and the hub's transaction goes to everybody whole."""
    hold(plot, AT_REST)


@FIXED
@given(plots({**AWAY, **GOOD}, several=True, filters=True, columns=True))
def test_replicas_hold_the_columns_that_they_are_sent(plot: Plot) -> None:
    """Whoever lacks a column writes its rows too, and what it has there reaches nobody."""
    hold(plot, (*AT_REST, check_transactions_are_whole))


@FIXED
@given(plots({**EVERYTHING, **COMPARED}, several=True, unique=True, columns=True))
def test_replicas_hold_the_columns_that_they_are_sent_whatever_happens(plot: Plot) -> None:
    """Columns beside restores, resyncs, snapshots, truncates, refused rows and repairs."""
    hold(plot, AT_REST)


@FIXED
@given(plots(FEEDS, several=True, by_packets=True))
def test_replicas_converge_though_one_is_fed_by_packets(plot: Plot) -> None:
    """Which are lost, doubled and swapped, over restarts of agent and hub."""
    hold(plot, AT_REST)


@FIXED
@given(plots(MOVES, several=True))
def test_replicas_converge_though_they_move_between_two_hubs(plot: Plot) -> None:
    """Each hub reads all topics in cuts of its own; where all are in the end all are equal."""
    hold(plot, AT_REST, make=TwoHubs)


@FIXED
@given(plots(PUTS_BACK, several=True))
def test_replicas_converge_though_the_hub_is_restored(plot: Plot) -> None:
    """Also if a database or a consumer's position is older, or newer, than the hub's state."""
    hold(plot, AT_REST)


@FIXED
@given(plots(PURGES, several=True, unique=True))
def test_replicas_converge_though_the_hub_purges(plot: Plot) -> None:
    """Nothing goes that somebody lacks; who was away for too long gets a full copy."""
    hold(plot, AT_REST)


@FIXED
@given(plots(PAUSES_TABLES, several=True, unique=True))
def test_replicas_converge_though_tables_are_paused(plot: Plot) -> None:
    """What others wrote meanwhile comes with a resync, and nothing is overwritten unseen."""
    hold(plot, AT_REST)


@FIXED
@given(plots(DELAYS, several=True, unique=True, delayed=True))
def test_replicas_converge_though_one_is_delayed(plot: Plot) -> None:
    """It is sent nothing early, whatever it loses and whoever truncates, and all in the end."""
    hold(plot, AT_REST)


@FIXED
@given(plots({**FEEDS, "purge": 6, "pass_time": 3}, several=True, by_packets=True))
def test_replicas_converge_though_the_hub_purges_what_packets_bring_late(plot: Plot) -> None:
    """A consumer of packets holds what it lacks from the beginning, until it is away too long."""
    hold(plot, AT_REST)


@FIXED
@given(plots(TAKEN_OUT, several=True))
def test_replicas_converge_though_some_are_taken_out(plot: Plot) -> None:
    """And come back as new ones under their old rids; what the hub had of them all others get."""
    hold(plot, AT_REST)


@FIXED
@given(plots(EVERYTHING, several=True, unique=True))
def test_replicas_converge_whatever_happens(plot: Plot) -> None:
    """Everything above in one story: a rule that is right alone may be wrong beside another."""
    hold(plot, AT_REST)


@FIXED
@given(plots(RESUMES, several=True, acts=True))
def test_replicas_converge_though_refused_rows_stop_agreements(plot: Plot) -> None:
    """Or are sent again by themselves; in the end every database takes them."""
    hold(plot, (*AT_REST, check_nothing_is_refused), takes_all=True)


def hold(
    plot: Plot,
    at_rest: Sequence[Callable[[World], None]],
    *,
    takes_all: bool = False,
    make: Make = PureHub,
) -> None:
    """Run a story; what always holds must hold after every step, the rest at its end.

    The story is noted in the language of the scenarios: when a law breaks, it is one more.
    `takes_all`: nothing is refused and no agreement is stopped by that when it comes to rest.
    `make`: what the hub is.
    """
    teller = Storyteller(story=Story(make))
    try:
        for world in teller.run(plot):
            for always in (*ALWAYS, check_yes_is_true):
                always(world)
        if takes_all:
            teller.end_refusing()
        for law in at_rest:
            law(teller.world)
        if teller.world.hub.uncarried():
            teller.end_uncarried()
            for law in (*at_rest, check_nothing_is_uncarried):
                law(teller.world)
        if teller.world.hub.refused():
            teller.end_refusing()
            for law in (*at_rest, check_nothing_is_refused):
                law(teller.world)
    finally:
        note("\n".join(teller.lines))
