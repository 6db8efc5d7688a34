"""A delayed agreement as `level`, `status`, `resume --now` and `config check` have it."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.reading.reader import open_state
from streaming.core.model.statuses import AwayReason
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.held_back import HeldBack
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.streaming.cli.conftest import CONFIG, Slackwater

DELAYED = CONFIG + "delay_s = 600\n"
KNOWN = ruv(r1=3)


@pytest.fixture(autouse=True)
def _delayed(config_file: Path) -> None:
    config_file.write_text(DELAYED, encoding="utf-8")


def now_ms() -> int:
    """The clock of a hub that runs."""
    return round(time.time() * 1000)


def commit(state: WrittenState, to_b: AgreementState, held: HeldBack | None) -> None:
    """Hub epoch 3, which a has, and b as far as it is given."""
    held_back = {"to-b": held} if held else {}
    replicas = [replica(rid, covers=3, seen_ms=now_ms()) for rid in (1, 2)]
    agreements = [agreement("to-a", 1, 3, KNOWN), to_b]
    state.commit(1, 3, KNOWN, replicas, agreements, held_back=held_back, at_ms=now_ms())


def test_what_waits_by_its_delay_is_no_lack(slackwater: Slackwater, state: WrittenState) -> None:
    """`level` says how much waits, and until when; the answer is about what is due."""
    commit(state, agreement("to-b", 2, 1, ruv(r1=1)), HeldBack(1, now_ms() - 60_000))

    facts = slackwater("level", "--json").facts
    to_b = slackwater("status", "--json").facts["agreements"][1]
    said = " ".join(slackwater("status").out.split())

    one = next(one for one in facts["agreements"] if one["name"] == "to-b")
    assert (one["has_all"], one["lag_epochs"], one["lacking"]) == (True, 0, [])
    assert one["delayed"]["hub_epochs"] == to_b["delayed"]["hub_epochs"] == 2
    assert (to_b["lag_epochs"], to_b["state"]) == (0, "in_sync")
    assert "to-b: 2 hub epochs wait by its delay, the first until" in said


@pytest.mark.parametrize(
    "held",
    [
        pytest.param(HeldBack(1, now_ms() - 700_000), id="it is due"),
        pytest.param(HeldBack(1, now_ms(), released=3), id="it was let go"),
        pytest.param(HeldBack(0, now_ms()), id="it is not known when"),
        pytest.param(None, id="nobody has looked"),
    ],
)
def test_what_is_due_is_lacking(
    slackwater: Slackwater, state: WrittenState, held: HeldBack | None
) -> None:
    """A delay is no excuse for more than itself."""
    commit(state, agreement("to-b", 2, 1, ruv(r1=1)), held)

    one = slackwater("level", "--json").facts["agreements"][1]

    assert (one["has_all"], one["delayed"]) == (False, None)
    assert (one["lag_epochs"], one["lacking"]) == (2, ["a"])


def test_what_was_sent_and_not_acknowledged_is_lacking(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """It was due before the rest that waits."""
    sent = replace(agreement("to-b", 2, 2, ruv(r1=2)), acked_covers=1, acked_ruv=ruv(r1=1))
    commit(state, sent, HeldBack(2, now_ms()))

    one = slackwater("level", "--json").facts["agreements"][1]

    assert (one["has_all"], one["lag_epochs"], one["lacking"]) == (False, 1, ["a"])


def test_resume_now_lets_go_what_waits(slackwater: Slackwater, state: WrittenState) -> None:
    """The hub decides what that is; of an agreement without a delay nothing waits."""
    commit(state, agreement("to-b", 2, 1, ruv(r1=1)), HeldBack(1, now_ms()))

    answer, refused = slackwater("resume", "to-b", "--now"), slackwater("resume", "to-a", "--now")

    asked = [(c["command"], c["argument"]) for c in open_state(state.root).commands()]
    assert (answer.code, asked) == (0, [("send_now", "to-b")])
    assert (refused.code, "to-a has no delay_s and no hours" in refused.err) == (1, True)


def test_one_that_needs_a_copy_says_what_begins_it(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """It is sent nothing, and nobody else can tell whether the rows of now are wanted."""
    commit(state, agreement("to-b", 2, 1, ruv(r1=1)).away(AwayReason.DELAYED, now_ms()), None)

    facts = slackwater("status", "--json").facts

    assert facts["agreements"][1]["state"] == "change_tracking: delayed"
    assert any("`slackwater resume to-b --now`" in one["remedy"] for one in facts["problems"])


def test_a_delayed_consumer_that_writes_is_warned_of(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """What it writes loses over rows that it has not seen for hours."""
    assert state.root.exists()
    warned = slackwater("config", "check").err

    config_file.write_text(DELAYED.replace("rid = 2", "rid = 2\nwrites = []"), encoding="utf-8")

    assert "agreement to-b is delayed, and b may write t" in " ".join(warned.split())
    assert slackwater("config", "check").err == ""


def test_what_waits_for_its_hours_or_its_rate_is_told_apart(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """By the hours it is not due; by the rate it is, and so a lack."""
    hour = time.gmtime().tm_hour
    closed = f'hours = "{(hour + 2) % 24:02}:00-{(hour + 3) % 24:02}:00 UTC"\n'
    commit(state, agreement("to-b", 2, 1, ruv(r1=1)), HeldBack(1, now_ms() - 60_000))
    found = []
    for line in (closed, "bytes_per_s = 10\n"):
        config_file.write_text(CONFIG + line, encoding="utf-8")
        found.append(slackwater("level", "--json").facts["agreements"][1])

    hours, rate = found
    assert (hours["delayed"]["reason"], hours["has_all"], hours["lag_epochs"]) == ("hours", True, 0)
    assert (rate["delayed"]["reason"], rate["has_all"], rate["lag_epochs"]) == ("rate", False, 2)
    assert slackwater("resume", "to-b", "--now").code == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('packets = "packets"', "packets are exported every packet_every_s seconds"),
        ('hours = "22-06"', "write them as 22:00-06:00 Europe/Paris"),
        ('compare.database = "b.db"', "a consumer that is delayed is not compared"),
    ],
)
def test_what_does_not_go_with_a_delay_is_refused(
    slackwater: Slackwater, config_file: Path, line: str, said: str
) -> None:
    """Rather than done halfway."""
    config_file.write_text(f"{DELAYED}{line}\n", encoding="utf-8")

    answer = slackwater("config", "check")

    assert (answer.code, said in " ".join(answer.err.split())) == (2, True)
