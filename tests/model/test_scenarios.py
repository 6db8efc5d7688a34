"""Stories of what breaks an almost right hub, on the pure model and on the real pipeline."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.harness.replays import check_replay_is_equal
from tests.harness.topics import TopicEnds
from tests.model.hub import PureHub
from tests.model.language import play
from tests.model.real_hub import RealHub
from tests.model.two_hubs import TwoHubs

SCENARIOS = Path(__file__).parents[1] / "scenarios"
STORIES = sorted(SCENARIOS.glob("*.txt"))
STORIES_OF_TWO = sorted((SCENARIOS / "two_hubs").glob("*.txt"))
STORIES_BY_CLOCK = sorted(
    [*(SCENARIOS / "delayed").glob("*.txt"), *(SCENARIOS / "purged").glob("*.txt")]
)
"""By the story's clock, which only the model has."""


MARKED_AWAY = "the hub marks"
"""In a story, what a hub does by itself once its clock says so: the tests do it by hand."""


@pytest.fixture(scope="module")
def ends(broker: Broker) -> Iterator[TopicEnds]:
    """Connections to the broker for all stories."""
    with TopicEnds(broker.bootstrap_servers) as opened:
        yield opened


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_the_story_holds_on_the_model(story: Path) -> None:
    """Each is a history that made a hub diverge, lose an update, or wait for ever."""
    play(story.read_text(encoding="utf-8"), PureHub)


@pytest.mark.parametrize("story", STORIES_BY_CLOCK, ids=lambda story: story.stem)
def test_the_story_of_hours_and_days_holds_on_the_model(story: Path) -> None:
    """Each is of a consumer that is delayed, or of what is purged."""
    play(story.read_text(encoding="utf-8"), PureHub)


@pytest.mark.parametrize("story", STORIES_OF_TWO, ids=lambda story: story.stem)
def test_the_story_of_two_hubs_holds_on_the_model(story: Path) -> None:
    """Each is a history that a hub which takes another's hub epochs for its own gets wrong."""
    play(story.read_text(encoding="utf-8"), TwoHubs)


@pytest.mark.more
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_the_story_has_the_same_end_on_the_real_pipeline(
    story: Path, spark: SparkSession, ends: TopicEnds, tmp_path: Path, topic_prefix: str
) -> None:
    """What the model promises is worth nothing if Kafka, Spark and Delta do otherwise.

    Judged again from the tables, each history comes out as it is recorded.
    """
    make = partial(RealHub, spark=spark, ends=ends, folder=tmp_path, prefix=topic_prefix)

    play(story.read_text(encoding="utf-8"), make)

    is_by_hand = MARKED_AWAY in story.read_text(encoding="utf-8")
    check_replay_is_equal(tmp_path / "state", without="agreement" if is_by_hand else "")
