"""What a batch writes: hub order, losers with their winners, and the original bytes."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from checkpoints.tables import CONFLICTS
from checkpoints.times import time_of
from connectors import wire
from streaming.core.model.change import Change
from streaming.core.model.row import RowState
from streaming.core.records.arrival import Quarantined
from streaming.core.records.kept_bytes import HEAD_BYTES, SHORT_HEAD_BYTES, KeptBytes
from streaming.core.records.quarantine_budget import (
    KeptSum,
    QuarantineBudget,
    QuarantineLimits,
)
from streaming.core.records.record import Commit, Heartbeat, Reason, RecordKind
from streaming.stages.checked import CHECKED
from streaming.stages.judge import Verdicts
from streaming.stages.log import CHANGE, LOG, REFRESH, changelog, conflicts, events, quarantine
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import RULES
from tests.streaming.stages.batches import HUB_EPOCH, judged, records_of, taken

BATCH = 8
K, L = ("t", '{"k":"k"}'), ("t", '{"k":"l"}')
IMAGE = '{"k":"k","v":"theirs"}'
THEIRS = RowState(2, 3, csn(1, 2), exists=True, image=IMAGE)
TOPICS = {1: "changes.a", 2: "changes.b"}
NAMES = {1: "alpha", 2: "beta"}
AT_MS = 1_700_000_000_000


@pytest.fixture
def verdicts() -> Verdicts:
    """A change that loses between two that nobody contends, the second of them a delete."""
    return judged(records_of(change(10, "l"), change(11), change(12, "l", None)), {K: THEIRS})


def test_places_are_the_hub_order_with_each_refresh_behind_its_change(verdicts: Verdicts) -> None:
    """Whoever reads by place applies what the hub decided, in that order."""
    log = changelog(verdicts, BATCH, HUB_EPOCH)

    in_order = log.sort_by("place")
    assert log.schema == LOG
    assert in_order["place"].to_pylist() == [0, 1, 2, 3]
    assert in_order["kind"].to_pylist() == [CHANGE, CHANGE, REFRESH, CHANGE]
    assert in_order["verdict"].to_pylist() == ["accepted", "rejected", None, "accepted"]
    assert set(log["hub_epoch"].to_pylist()) == {HUB_EPOCH}


def test_a_rejected_change_leaves_no_image_and_a_delete_none(verdicts: Verdicts) -> None:
    """`image` is the row after the entry: what a consumer is sent."""
    log = changelog(verdicts, BATCH, HUB_EPOCH).sort_by("place")

    assert log["image"].to_pylist() == ['{"k":"l","v":"v"}', None, IMAGE, None]
    assert log["after"].to_pylist()[1] == change(11).after
    refresh = log.to_pylist()[2]
    assert (refresh["to"], refresh["op"], refresh["csn"]) == (1, "update", csn(1, 2))


def test_the_facts_of_a_verdict_stand_beside_it(verdicts: Verdicts) -> None:
    """`replay` and an operator judge by them again."""
    row = changelog(verdicts, BATCH, HUB_EPOCH).sort_by("place").to_pylist()[1]

    assert (row["concurrent"], row["cause"]) == (True, "author")
    assert (row["row_author"], row["row_epoch"], row["row_csn"]) == (2, 3, csn(1, 2))


def test_a_loser_is_recorded_with_its_winner(verdicts: Verdicts) -> None:
    """No overwritten or rejected change is lost without a record."""
    log = changelog(verdicts, BATCH, HUB_EPOCH)

    found = conflicts(log, list(verdicts.judged.values()), RULES, NAMES, AT_MS)

    (row,) = found.to_pylist()
    assert found.schema == CONFLICTS
    assert (row["id"], row["lost"], row["resolution"]) == (f"{HUB_EPOCH}-1", "change", "open")
    assert (row["loser_csn"], row["winner_csn"]) == (csn(11), csn(1, 2))
    assert (row["after"], row["winner_image"]) == (change(11).after, IMAGE)
    assert (row["loser"], row["winner"]) == ("alpha", "beta")
    assert (row["time"], row["at"]) == (log["time"][1].as_py(), time_of(AT_MS))


def test_a_batch_without_a_conflict_records_none() -> None:
    """Most batches write no row of that table."""
    verdicts = judged(records_of(change(10)), {})

    log = changelog(verdicts, BATCH, HUB_EPOCH)
    assert conflicts(log, list(verdicts.judged.values()), RULES, NAMES, AT_MS).num_rows == 0


def test_quarantine_keeps_the_bytes_wherever_they_are() -> None:
    """Those that came with the batch are not fetched again."""
    received = records_of(change(11), change(10), change(12))
    received[3] = replace(received[3], reason=Reason.SKEW)
    _, intake = taken(*received)
    fetched = list[tuple[int, int]]()

    def originals(places: Sequence[tuple[int, int]]) -> Mapping[tuple[int, int], KeptBytes]:
        fetched.extend(places)
        return dict.fromkeys(places, KeptBytes(b"from Kafka", 10))

    found = quarantine(intake.quarantined, {(1, 2): b"here"}, originals, TOPICS, BATCH)

    kept = {row["id"]: (row["reason"], row["value"]) for row in found.to_pylist()}
    assert kept == {"1-2": ("late", b"here"), "1-3": ("skew", b"from Kafka")}
    assert fetched == [(1, 3)]


def test_what_cannot_be_read_again_is_kept_by_its_place() -> None:
    """Its topic may hold a batch that nobody can read; that is no reason to stop."""
    received = records_of(change(11), change(10))
    _, intake = taken(*received)

    (row,) = quarantine(intake.quarantined, {}, lambda _: {}, TOPICS, BATCH).to_pylist()

    assert (row["id"], row["reason"], row["topic"], row["offset"]) == ("1-2", "late", TOPICS[1], 2)
    assert (row["value"], row["bytes"], row["sha256"]) == (None, None, None)
    assert "no readable record" in row["detail"]
    assert (row["op"], row["epoch"], row["csn"]) == ("update", 1, csn(10))


def test_of_a_large_record_the_head_is_kept_once() -> None:
    """Whoever sends it again and again fills no disk with it."""
    large = b"x" * (HEAD_BYTES + 1)
    first = replace(records_of(change(11))[1], reason=Reason.SIZE, content="hash")
    again = replace(first, offset=2)
    _, intake = taken(records_of()[0], first, again)
    values = {(1, 1): large, (1, 2): large}

    def kept(record_bytes: int) -> dict[str, Any]:
        bad, budget = intake.quarantined, QuarantineBudget(QuarantineLimits(record_bytes))
        found = quarantine(bad, values, lambda _: {}, TOPICS, BATCH, budget=budget)
        (row,) = found.to_pylist()
        return dict(row)

    cut, whole = kept(HEAD_BYTES), kept(HEAD_BYTES + 1)

    assert (cut["value"], cut["bytes"]) == (large[:HEAD_BYTES], len(large))
    assert cut["sha256"] == hashlib.sha256(large).hexdigest()
    assert (whole["value"], whole["bytes"], whole["sha256"]) == (large, len(large), None)
    told = events(intake, CHECKED.empty_table(), values, TOPICS, BATCH, HUB_EPOCH, HEAD_BYTES)
    assert [row["value"] for row in told.to_pylist() if row["csn"]] == [""]


def test_beyond_the_budget_no_text_of_an_invalid_record_is_longer_than_a_head() -> None:
    """Otherwise its megabyte stands in the name of its table. A key is whole, or none."""
    text = "x" * (SHORT_HEAD_BYTES + 1)
    hostile = change(11)._replace(csn=text, table=text, key=text)
    place, why = (1, 1, AT_MS, text), (Reason.CSN, "no CSN")
    invalid = Quarantined(*place, *why, hostile, kind=RecordKind.CHANGE, is_invalid=True)
    bad = [invalid, *taken(*records_of(change(11), change(10)))[1].quarantined]
    values = {(1, 1): text.encode(), (1, 2): text.encode()}
    spent = QuarantineBudget(before={1: KeptSum(100_000, 0)})

    first, second = quarantine(bad, values, lambda _: {}, TOPICS, BATCH, budget=spent).to_pylist()

    head = text[:SHORT_HEAD_BYTES]
    assert [first[name] for name in ("csn", "table", "session", "key")] == [head, head, head, ""]
    assert (first["kind"], first["invalid"]) == ("change", True)
    assert (second["kind"], second["invalid"], second["reason"]) == ("change", False, "late")
    assert (second["csn"], second["key"]) == (csn(10), change(10).key)
    assert [len(one["value"]) for one in (first, second)] == [SHORT_HEAD_BYTES] * 2
    assert spent.changes() == {1: KeptSum(2, 2 * SHORT_HEAD_BYTES)}


def test_events_of_runs_and_of_single_records_are_in_topic_order() -> None:
    """A batch can be judged again without Kafka, from these."""
    received = records_of(change(10, tx=10), Commit(csn(10)), Heartbeat(1), change(11))
    found, intake = taken(*received)
    values = {
        (one.rid, one.offset): wire.encode("1-1", one.record)
        for one in received
        if one.record is not None and not isinstance(one.record, Change)
    }

    rows = events(intake, found.commits, values, TOPICS, BATCH, HUB_EPOCH)

    written = [(row["offset"], row["kind"], row["outcome"]) for row in rows.to_pylist()]
    assert written == [(0, "hello", "taken"), (2, "commit", "taken"), (3, "heartbeat", "taken")]
    assert {row["topic"] for row in rows.to_pylist()} == {"changes.a"}
    assert all(row["value"] for row in rows.to_pylist())
