"""Claims about `resync`: what it foretells and asks of the hub, and how it shows what is sent."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from streaming.core.model.command import ResyncOrder
from streaming.core.model.statuses import AgreementStatus, AwayReason, Stop, StopReason
from streaming.core.state.agreement_state import AgreementState
from streaming.core.tracking.progress import Accounting, Piece, ResyncMode, WorkKind, begin
from streaming.core.tracking.resync import CoveredPosition, Resync, UnackedPage
from streaming.facts.consumers import resync as facts
from tests.checkpoints.written_state import (
    START_S,
    WrittenState,
    agreement,
    change_row,
    replica,
    ruv,
)
from tests.harness.builders import csn
from tests.streaming.cli.conftest import CONFIG, Slackwater

SECOND_TABLE = '[[tables]]\nname = "u"\nkey = ["id"]\ncolumns = { id = "int64" }\n'
KNOWN = ruv(r1=2, r2=2)
IN_SYNC = agreement("to-b", 2, 3, KNOWN)
BEHIND = agreement("to-b", 2, 2, ruv(r1=1, r2=2))


@pytest.fixture(autouse=True)
def two_tables(config_file: Path) -> None:
    """The hub has tables t and u."""
    config_file.write_text(CONFIG.replace("[[tables]]", f"{SECOND_TABLE}[[tables]]", 1))


def commit(state: WrittenState, *agreements: AgreementState) -> None:
    """Commit hub epoch 3, with two replicas that are heard."""
    now_ms = round(time.time() * 1000)
    replicas = [replica(rid, covers=3, seen_ms=now_ms) for rid in (1, 2)]
    state.commit(9, 3, KNOWN, replicas, agreements, at_ms=now_ms)


def asked(state: WrittenState) -> Sequence[tuple[str, str]]:
    """The commands that wait for the hub."""
    return [(c["command"], c["argument"]) for c in open_state(state.root).commands()]


def order(*, full: bool = False, tables: Sequence[str] = ()) -> tuple[str, str]:
    """The command that waits for the hub when this resync of to-b was ordered."""
    return "resync", ResyncOrder("to-b", full, frozenset(tables)).text()


def away(why: AwayReason, one: AgreementState = BEHIND) -> AgreementState:
    """The agreement when its consumer is away since the start of the tests' time."""
    return one.away(why, START_S * 1_000)


def in_resync(accounting: Accounting | None, last_page: int = 0) -> AgreementState:
    """The agreement in a resync that began 100 s ago and has two pages in flight."""
    started_ms = round(time.time() * 1_000) - 100_000
    pages = (UnackedPage(2, ()), UnackedPage(3, ())) if accounting else ()
    held = CoveredPosition(2, KNOWN)
    resync = Resync(2, held, started_ms, accounting, unacked=pages, last_page=last_page)
    status = AgreementStatus.IN_SYNC if last_page else AgreementStatus.RESYNC
    return replace(BEHIND, status=status, resync=resync)


def sent(rows: int) -> Accounting:
    """What is sent when the first of two tables has sent so many of its 300 rows, of 400 in all."""
    pieces = [Piece("t", WorkKind.PAGE, 300), Piece("u", WorkKind.PAGE, 100)]
    started_s = round(time.time()) - 100
    begun = begin(ResyncMode.INCREMENTAL, started_s, pieces)
    return begun.page_sent("t", rows, '{"id":"7"}', is_last=rows == 300)


# -- what it asks of the hub ----------------------------------------------------------------


def test_it_foretells_the_rows_that_are_lacking(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Each row counts once, and neither what the consumer has nor what it wrote itself."""
    commit(state, agreement("to-b", 2, 1, ruv(r1=1)))
    rows = [change_row(1, 1, 0, csn(1, 1)), change_row(2, 2, 0, csn(2, 1))]
    rows += [change_row(3, 3, 0, csn(3, 1)), change_row(3, 3, 1, csn(1, 2), "u")]
    state.append(TableName.CHANGELOG, *rows)

    answer = slackwater("resync", "to-b")

    assert (answer.code, asked(state)) == (0, [order()])
    first, second = answer.out.splitlines()
    assert first == "b gets what was written since hub epoch 1, each row once as it stands: 1 row"
    assert second == "resync to-b: command 1; a running hub executes it with its next batch"
    found = slackwater("resync", "to-b", "--json").facts
    assert (found["number"], found["after"], found["tracked"], found["whole"]) == (1, 1, 1, [])


@pytest.mark.parametrize(
    ("options", "ordered", "said"),
    [
        (["--full"], order(full=True), "b gets all rows of t, u as they stand, and loses those"),
        (
            ["--table", "u"],
            order(tables="u"),
            "b gets what was written since hub epoch 3, each row once as it stands: 0 rows;",
        ),
        (["--table", "u"], order(tables="u"), "; and all rows of u as they stand, and loses those"),
        (["--table", "u", "--table", "t"], order(tables="ut"), "; and all rows of t, u as they"),
    ],
)
def test_an_option_copies_whole_tables(
    slackwater: Slackwater,
    state: WrittenState,
    options: list[str],
    ordered: tuple[str, str],
    said: str,
) -> None:
    """Rows that somebody changed behind the agent's back are in no changelog."""
    commit(state, IN_SYNC)

    answer = slackwater("resync", "to-b", *options)

    assert (answer.code, asked(state)) == (0, [ordered])
    assert said in answer.out


def test_an_archive_is_said_to_lose_nothing(
    slackwater: Slackwater, config_file: Path, state: WrittenState
) -> None:
    """A copy deletes nothing there."""
    text = config_file.read_text()
    config_file.write_text(
        text.replace('name = "to-b"', 'name = "to-b"\nsend = ["insert", "update"]')
    )
    commit(state, IN_SYNC)

    answer = slackwater("resync", "to-b", "--full")

    assert answer.out.splitlines()[0] == "b gets all rows of t, u as they stand"


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (away(AwayReason.PAUSED), "what was written since hub epoch 2"),
        (replace(BEHIND, is_full=True), "all rows of t, u"),
        (in_resync(None), "; the resync that is under way begins again"),
        (AgreementState("to-b", 2), "; this begins when its agent is started"),
        (away(AwayReason.ELSEWHERE), "is started with this hub's configuration"),
        (IN_SYNC.refused("t"), "what was written since hub epoch 3"),
    ],
)
def test_whatever_can_be_sent_to_can_be_resynced(
    slackwater: Slackwater, state: WrittenState, known: AgreementState, said: str
) -> None:
    """A pause, a refused row and an interrupted resync all end with this one command."""
    commit(state, known)

    answer = slackwater("resync", "to-b")

    assert (answer.code, asked(state)) == (0, [order()])
    assert said in answer.out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["to-z"], 2, "there is no agreement 'to-z': use one of to-a, to-b"),
        (["status", "--full"], 2, "there is no agreement 'status'"),
        (["to-b", "--table", "x"], 2, "to-b has no table 'x': use one of t, u"),
        (["to-b", "--full", "--table", "t"], 2, "--full copies every table"),
        (["--full"], 2, "name the agreement"),
        (["to-a"], 1, "to-a is hub_behind: its database has what this hub's state lacks"),
        (["to-b"], 1, "the hub does not know agreement to-b yet: restart it"),
    ],
)
def test_what_cannot_be_resynced_is_refused(
    slackwater: Slackwater, state: WrittenState, arguments: list[str], code: int, said: str
) -> None:
    """The hub would count such an order and do nothing, and nobody would look at the count."""
    commit(state, agreement("to-a", 1, 3, KNOWN).stopped(Stop(StopReason.HUB_BEHIND)))

    answer = slackwater("resync", *arguments)

    assert (answer.code, asked(state)) == (code, [])
    assert said in answer.err


def test_an_agreement_called_status_is_resynced_with_an_option(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """Without one the word shows what is under way, so that no look orders anything."""
    config_file.write_text(config_file.read_text().replace('"to-b"', '"status"'))
    commit(state, replace(IN_SYNC, name="status"))

    shown, ordered = slackwater("resync", "status"), slackwater("resync", "status", "--full")

    assert "no consumer is away" in shown.out
    assert asked(state) == [("resync", ResyncOrder("status", is_full=True).text())]
    assert ordered.code == 0


# -- what it shows --------------------------------------------------------------------------


def test_a_resync_is_shown_as_gpstate_shows_it(slackwater: Slackwater, state: WrittenState) -> None:
    """Mode, rows, percent with two decimals, tables left, and when it ends if it goes on so."""
    commit(state, IN_SYNC, in_resync(sent(133)))

    (found,) = slackwater("resync", "status", "--json").facts
    shown = slackwater("resync").out.splitlines()

    assert (found["agreement"], found["consumer"], found["state"]) == ("to-b", "b", "resync")
    assert (found["mode"], found["synchronized"], found["total"]) == ("incremental", 133, 400)
    assert (found["percent"], found["tables"], found["tables_left"]) == (33.25, 2, 2)
    assert (found["unacknowledged"], found["away"], found["remedy"]) == (2, None, None)
    assert found["estimated_end"] > found["since"]
    assert len(shown) == 4
    assert " 33.25% " in shown[2]
    assert " 2 of 2 " in shown[2]
    assert shown[3].startswith("to-b: waits for its acknowledgement of 2 pages since 20")


@pytest.mark.parametrize(
    ("known", "percent", "total", "left", "state_text"),
    [
        (in_resync(None), None, None, None, "resync"),
        (in_resync(sent(0)), None, None, 2, "resync"),
        (in_resync(sent(300)), 75.0, 400, 1, "resync 75.00%"),
        (in_resync(sent(300).page_sent("u", 100, None, is_last=True), 3), 100, None, 0, None),
    ],
)
def test_what_cannot_be_said_is_left_open(
    slackwater: Slackwater,
    state: WrittenState,
    known: AgreementState,
    percent: float | None,
    total: int | None,
    left: int | None,
    state_text: str | None,
) -> None:
    """The first rows say nothing of the rest, and 100 % is for a resync whose last page is sent."""
    commit(state, known)

    (found,) = slackwater("resync", "--json").facts
    status = slackwater("status").out

    assert (found["percent"], found["total"], found["tables_left"]) == (percent, total, left)
    assert state_text is None or f" {state_text} " in status


def test_who_waits_without_a_number_says_for_what_and_since_when(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Otherwise a resync of which nothing is known yet looks as one that hangs."""
    commit(state, replace(IN_SYNC, session=None, is_full=True))
    (hello,) = slackwater("resync", "--json").facts
    answer = slackwater("resync", "to-b")
    (ordered,) = slackwater("resync", "--json").facts
    shown = [slackwater(command).out for command in ("status", "level", "resync")]

    assert answer.code == 0
    assert (hello["waits_for"], ordered["waits_for"]) == ("hello", "batch")
    assert hello["waits_text"].startswith("waits for a hello of its agent since 20")
    assert ordered["waits_since"] > hello["waits_since"]
    assert all(" ".join(one.split()).count("waits for the hub's next batch since") for one in shown)


def test_a_resync_behind_others_says_that_it_waits_for_its_turn(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """The hub prepares limits.resync_workers of them at a time, those first that began first."""
    config_file.write_text(f"{config_file.read_text()}[limits]\nresync_workers = 1\n")
    first = replace(in_resync(None), name="to-a", consumer=1)
    second = in_resync(None)
    assert second.resync is not None
    later = replace(second.resync, started_ms=second.resync.started_ms + 1_000)
    commit(state, first, replace(second, resync=later))

    found = {one["agreement"]: one["waits_for"] for one in slackwater("resync", "--json").facts}

    assert found == {"to-a": "rows", "to-b": "turn"}


def test_a_consumer_that_is_away_is_shown_with_what_it_lacks(
    slackwater: Slackwater, state: WrittenState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells how long a resync will take, and whether it is time for one."""
    commit(state, away(AwayReason.SILENT))
    state.append(TableName.CHANGELOG, change_row(3, 3, 0, csn(2, 1)))

    (found,) = slackwater("resync", "--json").facts
    monkeypatch.setattr(facts, "COUNTED_ENTRIES", 0)
    (uncounted,) = slackwater("resync", "--json").facts

    assert (found["away"], found["state"]) == ("silent", "change_tracking: silent")
    assert (found["since"], found["tracked"]) == ("2023-11-14T22:13:20Z", 1)
    assert (found["mode"], found["percent"]) == ("incremental", None)
    assert uncounted["tracked"] is None


def test_an_order_is_shown_until_the_hub_takes_it(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Who waits for the end of a resync must not take its beginning for it."""
    commit(state, agreement("to-a", 1, 3, KNOWN), away(AwayReason.PAUSED))
    slackwater("resync", "to-b", "--full")

    (found,) = slackwater("resync", "--json").facts
    status = slackwater("status")

    assert (found["is_ordered"], found["remedy"]) == (True, None)
    assert status.code == 0, "nothing is left to be done"
    assert "change_tracking: paused, resync ordered" in status.out
    number = open_state(state.root).commands()[-1]["number"]
    state.commit(10, 3, KNOWN, [replica(2, covers=3)], [IN_SYNC], command_number=number)
    assert slackwater("resync", "--json").facts == []
