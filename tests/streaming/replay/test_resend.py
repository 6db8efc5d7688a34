"""Claims about `replay --agreement`: what is sent again is what was sent."""

from pathlib import Path

from checkpoints.reading.past import PastStore
from streaming.replay.configured import ConfigsThen
from streaming.replay.report.answer import choose
from streaming.replay.resend import SentRecord, sent_again
from tests.model.language import play
from tests.model.local_hub import LocalHub, local_hubs
from tests.streaming.cli.conftest import Slackwater
from tests.streaming.replay.conftest import STORY


def test_what_is_sent_again_is_byte_for_byte_what_was_sent(tmp_path: Path) -> None:
    """A consumer knows by the ids what it has, and a part that differs would be a new batch."""
    hub = play(STORY, local_hubs(tmp_path)).hub
    assert isinstance(hub, LocalHub)
    store = PastStore(tmp_path / "state")

    for name in ("r1", "r2", "r3"):
        marks = choose(store, None, None).marks
        again = [*sent_again(store, ConfigsThen(store), marks, name)]

        assert all(isinstance(one, SentRecord) for one in again)
        assert [
            (one.id, one.value) for one in again if isinstance(one, SentRecord)
        ] == hub.ends.read(hub.config.updates_topic(name))
    store.close()


def test_a_dry_run_only_counts(slackwater: Slackwater) -> None:
    """It needs no broker."""
    whole = slackwater("replay", "--agreement", "r2", "--from", "1", "--dry-run", "--json")
    last = slackwater("replay", "--agreement", "r2", "--from", "5", "--dry-run", "--json")

    assert whole.code == last.code == 0
    assert whole.facts["sent"] is False
    assert 0 < last.facts["records"] < whole.facts["records"]
    assert whole.facts["items"] >= 4


def test_it_must_be_said_where_to_begin(slackwater: Slackwater) -> None:
    """Everything is rarely what is wanted."""
    answer = slackwater("replay", "--agreement", "r2")

    assert answer.code == 2
    assert "--from" in answer.err
