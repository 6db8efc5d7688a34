"""The pages that commands write and a hub serves, in a real Chromium."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from checkpoints.tables import TableName
from streaming.config.sources.load import load
from streaming.facts.history.story_graph import WIDTH, graph
from tests.checkpoints.written_state import WrittenState, ruv
from tests.harness.browser import Scheme, chromium, opened_page
from tests.harness.recorded_hub import served
from tests.streaming.cli.conftest import CONFIG

LONG = "the row stood as " + '{"id":"7","note":"' + "long " * 60 + '"}' + "x" * 200
STEPS = [
    ("came", "from a, offset 7"),
    ("against", LONG),
    ("had seen", "hub epoch 3"),
    ("verdict", "rejected: " + "because " * 40),
    ("acknowledged", "by all"),
]
PAGE = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests."""
    with chromium() as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_story_shows_every_text_whole(browser: Browser, tmp_path: Path, scheme: Scheme) -> None:
    """What is cut is what its reader asks for: the rows, and why."""
    file = tmp_path / "story.html"
    file.write_text(graph("Change 1", STEPS), encoding="utf-8")

    with opened_page(browser, file.as_uri(), scheme=scheme) as found:
        shown = "".join(found.page.locator("svg text").all_text_contents()).replace(" ", "")
        wide = found.page.evaluate(
            "[...document.querySelectorAll('svg text')].map(one => one.getBBox().width)"
        )
        background = found.page.evaluate(PAGE)
        violations = found.violations()

    for _, text in STEPS:
        assert text.replace(" ", "") in shown
    assert max(wide) <= WIDTH - 16
    assert (background == "rgb(255, 255, 255)") is (scheme == "light")
    assert [one for one in violations if "contrast" in one] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_hub_says_why_a_row_was_refused_and_when(
    browser: Browser, tmp_path: Path, scheme: Scheme
) -> None:
    """A refused row has no loser and no winner, and what its database said is all that helps."""
    config = tmp_path / "hub.toml"
    config.write_text(CONFIG, encoding="utf-8")
    state = WrittenState(tmp_path / "state").create()
    state.commit(9, 5, ruv(r1=3, r2=3))
    refused = {
        "batch": 9,
        "hub_epoch": 5,
        "place": 0,
        "id": "r2-17",
        "kind": "refused",
        "table": "t",
        "key": '{"id":"1"}',
        "loser": "b",
        "loser_rid": 2,
        "code": "unique",
        "text": "UNIQUE constraint failed: t.email",
        "attempts": 3,
        "resolution": "open",
        "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    }
    state.append(TableName.CONFLICTS, refused)

    with (
        served(load(config)) as port,
        opened_page(browser, f"http://127.0.0.1:{port}/", scheme=scheme) as found,
    ):
        item = found.page.locator("#conflicts li").first
        item.wait_for(timeout=60_000)
        text = item.inner_text()
        background = found.page.evaluate(PAGE)

    assert "2026-01-02 03:04:05Z, refused, hub epoch 5, open" in text
    assert "Refused by\tb" in text
    assert "Code\tunique" in text
    assert "Its database said\tUNIQUE constraint failed: t.email" in text
    assert "Attempts\t3" in text
    assert "no row" not in text
    assert (background == "rgb(244, 246, 247)") is (scheme == "light")
