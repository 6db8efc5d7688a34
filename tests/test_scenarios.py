"""Stories of what breaks an almost right hub, run on the pure model."""

from pathlib import Path

import pytest

from tests.model_hub import PureHub
from tests.scenario_language import play

STORIES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_the_story_holds_on_the_model(story: Path) -> None:
    """Each is a history that made a hub diverge, lose an update, or wait for ever."""
    play(story.read_text(encoding="utf-8"), PureHub)
