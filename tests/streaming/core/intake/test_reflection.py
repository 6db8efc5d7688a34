"""What a replica had seen when it wrote: sessions, reflections, and the MRE."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.state.reflection import Session, mre, mre_same, new_session, reflect

MANY = 1_000

reflections = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), max_size=30)


def session_of(received: list[tuple[int, int]], limit: int = MANY) -> Session:
    """The session of a hello in epoch 0 and of these (epoch, covers) behind it."""
    session = new_session("s", 0, 0)
    for epoch, covers in received:
        session = reflect(session, epoch, covers, limit)
    return session


@pytest.mark.parametrize(("epoch", "expected"), [(4, 0), (5, 0), (6, 7), (100, 7)])
def test_an_applied_counts_from_the_epoch_behind_it(epoch: int, expected: int) -> None:
    """It may be of before the apply (docs/traps.md, A reflection counts for its own epoch)."""
    assert mre((session_of([(5, 7)]),), epoch) == expected


def test_the_own_epochs_reflection_is_kept_apart() -> None:
    """It distinguishes conflicts that only this rule made."""
    assert mre_same((session_of([(5, 7)]),), 5) == 7
    assert mre_same((session_of([(5, 7)]),), 4) == 0


@given(reflections, st.integers(0, 31))
def test_the_mre_is_the_largest_covers_of_lower_epochs(
    received: list[tuple[int, int]], epoch: int
) -> None:
    """Whatever order they come in, and however often: the definition, word for word."""
    session = session_of(received)

    assert mre((session,), epoch) == max((c for e, c in received if e < epoch), default=0)
    assert session.reflected(epoch, same=True) == max(
        (c for e, c in received if e <= epoch), default=0
    )


@given(reflections, st.integers(4, 8))
def test_thinning_never_raises_the_mre(received: list[tuple[int, int]], limit: int) -> None:
    """A forgotten step may cost a refresh, never an update; the last one is never dropped."""
    thin, whole = session_of(received, limit), session_of(received)

    assert all(thin.reflected(e) <= whole.reflected(e) for e in range(32))
    assert thin.mre == whole.mre
    assert thin.reflected(31) == whole.reflected(31)


def test_thinning_forgets_every_second_step_of_the_older_half() -> None:
    """The hello's step stays, so does every newer one, and each with the covers it came with."""
    session = new_session("s", 0, 5)
    for epoch in range(1, 8):
        session = reflect(session, epoch, 10 * epoch, limit=8)
    assert session.epochs == (0, 1, 2, 3, 4, 5, 6, 7)

    session = reflect(session, 8, 80, limit=8)

    assert session.epochs == (0, 2, 4, 5, 6, 7, 8)
    assert session.covers == (5, 20, 40, 50, 60, 70, 80)


@pytest.mark.parametrize("limit", range(2, 10))
def test_a_long_session_never_raises_the_mre(limit: int) -> None:
    """Thinned again and again, it still knows no more of any epoch than was reflected."""
    said = [(epoch, 10 * epoch) for epoch in range(1, 60)]
    for count in range(1, len(said)):
        thin, whole = session_of(said[:count], limit), session_of(said[:count])

        assert all(thin.reflected(e) <= whole.reflected(e) for e in range(62))
        assert thin.reflected(count + 1) == whole.reflected(count + 1)


@given(reflections, st.integers(4, 8))
def test_a_session_is_bounded(received: list[tuple[int, int]], limit: int) -> None:
    """However long a session lasts, what is kept of it fits the commit row."""
    session = session_of(received, limit)

    assert len(session.epochs) == len(session.covers) <= limit
    assert list(session.epochs) == sorted(set(session.epochs))
    assert list(session.covers) == sorted(set(session.covers))


OLD = reflect(new_session("old", 0, 0), 3, 4, MANY)
NEW = reflect(new_session("new", 5, 6), 8, 9, MANY)


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        pytest.param(9, 9, id="behind the last applied"),
        pytest.param(8, 6, id="behind the hello"),
        pytest.param(6, 6, id="first epoch behind the hello"),
        pytest.param(5, 4, id="the hello's own epoch: a journal's tail, judged by the old session"),
        pytest.param(4, 4, id="behind the old session's applied"),
        pytest.param(3, 0, id="before it"),
        pytest.param(0, 0, id="before any hello"),
    ],
)
def test_a_journals_tail_is_judged_by_the_session_before(epoch: int, expected: int) -> None:
    """See docs/traps.md, A hello counts for changes written before it."""
    assert mre((OLD, NEW), epoch) == expected


def test_without_a_session_nothing_was_seen() -> None:
    """A replica that never sent a hello has reflected nothing."""
    assert mre((), 5) == 0
    assert mre_same((), 5) == 0


def test_before_its_hello_a_session_reflected_nothing() -> None:
    """An epoch below the hello's is of a database that may have had less."""
    session = reflect(new_session("s", 5, 6), 8, 9, MANY)

    assert [session.reflected(epoch) for epoch in (4, 5, 6)] == [0, 0, 6]
    assert session.reflected(4, same=True) == 0


def test_the_hellos_own_epoch_is_kept_apart_too() -> None:
    """Its covers would count if reflections of a change's own epoch did."""
    assert [mre_same((OLD, NEW), epoch) for epoch in (4, 5)] == [4, 6]


def test_a_step_that_another_one_covers_goes() -> None:
    """Of one epoch only the largest covers counts, of one covers only the smallest epoch."""
    assert session_of([(5, 7), (5, 8)]).epochs == (0, 5)
    assert session_of([(6, 8), (5, 8)]).epochs == (0, 5)


def test_a_repeated_applied_changes_nothing() -> None:
    """The broker may deliver it twice, also behind later ones."""
    session = session_of([(5, 7), (6, 8)])

    assert reflect(session, 5, 7, MANY) is session
