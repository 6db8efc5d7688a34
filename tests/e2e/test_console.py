"""The page at `/` in a real Chromium, beside a hub at work."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.harness.browser import DESKTOP, PHONE, OpenPage, Scheme, chromium, opened_page
from tests.harness.busy_hub import collide, say_hello, spoil
from tests.harness.hub_process import wait_until
from tests.harness.served_hub import ServedHub, serving
from tests.harness.site import Site, site

SCREENSHOT = os.environ.get("SLACKWATER_SCREENSHOT", "")
"""Where the picture of the README is written, if it is to be made anew."""
NOTHING = "\N{EN DASH}"
"""What a cell shows that has no value."""


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory, broker: Broker) -> Iterator[Site]:
    """A hub with three replicas, the third of which stays behind."""
    folder: Path = tmp_path_factory.mktemp("console")
    with site(folder, broker.bootstrap_servers, "console.", "abc") as made:
        yield made


@pytest.fixture(scope="module")
def hub(at: Site, spark: SparkSession) -> Iterator[ServedHub]:
    """It has judged conflicts, and quarantined a record."""
    with serving(at, spark) as running:
        say_hello(at, running)
        for number in range(3):
            collide(at, running, f" first {number}")
        spoil(at, running)
        running.reads_its_tables()
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests."""
    with chromium() as found:
        yield found


@pytest.fixture
def page(hub: ServedHub, browser: Browser) -> Iterator[OpenPage]:
    """The page at desktop width, which knows the state."""
    with opened_page(browser, address(hub)) as found:
        is_filled(found)
        yield found


def address(hub: ServedHub) -> str:
    """Where the page is."""
    return f"http://127.0.0.1:{hub.port.number}/"


def is_filled(page: OpenPage) -> None:
    """Wait until state and conflicts are there."""
    for selector in ("#agreements td", "#conflicts li"):
        page.page.locator(selector).first.wait_for()


def shows(page: OpenPage, text: str) -> None:
    """Wait until a conflict with this text is there."""
    page.page.locator("#conflicts li", has_text=text).first.wait_for(timeout=60_000)


def test_it_loads_only_from_the_hub_and_without_complaints(hub: ServedHub, page: OpenPage) -> None:
    """It must work where no other machine can be reached, and tell nobody that it was opened."""
    fetched = {url.removeprefix(address(hub)) for url in page.fetched}

    assert page.complaints == []
    assert fetched == {"", "console.css", "console.js", "icon.svg", "events", "conflicts"}


def test_a_new_conflict_comes_by_itself(at: Site, hub: ServedHub, page: OpenPage) -> None:
    """Whoever watches sees it as it happens, and does not press a key for it."""
    page.page.evaluate("window.loaded = 'once'")
    collide(at, hub, " by event")

    shows(page, "b by event")

    assert page.page.evaluate("window.loaded") == "once"
    assert any("1 rejected" in text for text in page.texts("#epochs li"))
    assert page.complaints == []


def test_loser_and_winner_are_side_by_side(at: Site, hub: ServedHub, page: OpenPage) -> None:
    """What differs is marked: a row may have many columns that do not."""
    collide(at, hub, " side by side")
    shows(page, "b side by side")

    newest = page.page.locator("#conflicts li").first

    assert newest.locator("thead th").all_inner_texts() == ["Column", "Lost: b", "Won: a"]
    assert newest.locator("tbody tr").all_inner_texts() == [
        "k\tcontended\tcontended",
        "v\tb side by side\ta side by side",
    ]
    assert newest.locator("mark").all_inner_texts() == ["b side by side", "a side by side"]


def test_it_is_used_with_the_keyboard(at: Site, hub: ServedHub, page: OpenPage) -> None:
    """Skip what is above, hold the page to read it, and let it go on."""
    keyboard = page.page.keyboard
    keyboard.press("Tab")
    assert page.focused() == "skip"
    keyboard.press("Enter")
    assert page.focused() == "conflicts-title"
    keyboard.press("Shift+Tab")
    while page.focused() != "pause":
        assert page.focused(), "the focus left the page"
        keyboard.press("Shift+Tab")
    keyboard.press("Space")
    assert page.texts("#pause") == ["Resume"]
    collide(at, hub, " while paused")
    known = hub.port.value("slackwater_hub_epoch")
    wait_until(lambda: hub.port.value("slackwater_hub_epoch") >= known, lambda: "the next epoch")
    page.page.wait_for_timeout(1_000)
    assert "b while paused" not in page.page.locator("#conflicts").inner_text()

    keyboard.press("Space")

    shows(page, "b while paused")
    assert page.texts("#pause") == ["Pause"]


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_at_each_width(
    hub: ServedHub, browser: Browser, size: tuple[int, int], scheme: Scheme
) -> None:
    """On a phone at night as well as on the wall: contrast, names, order of headings, width."""
    with opened_page(browser, address(hub), size, scheme) as page:
        is_filled(page)

        assert page.violations() == []
        assert not page.is_wider_than_the_screen()


def test_its_numbers_are_those_of_the_command_line(at: Site, page: OpenPage) -> None:
    """One model: nobody has to ask which of two numbers is right."""
    status = at.slackwater("status")
    behind = {one["name"]: one for one in status["agreements"]}["c"]

    rows = {row.split("\t")[0]: row.split("\t")[1:] for row in page.texts("#agreements tbody tr")}
    matrix = {row.split("\t")[0]: row.split("\t")[1:] for row in page.texts("#lag tbody tr")}

    assert page.texts("#epoch") == [str(status["hub_epoch"])]
    assert page.texts("#conflict-count") == [str(status["conflicts"]["total"])]
    assert page.texts("#quarantine li") == ["json: 1"]
    assert page.texts("#unread") == ["0"]
    assert rows["a"][:3] == ["in_sync", "level", "0"]
    assert rows["b"][:3] == ["in_sync", "not level", "0"]  # what is no JSON may be a change of b
    assert rows["c"][0] == behind["state"]
    assert rows["c"][2] == str(behind["lag_changes"]) != "0"
    changes = [str(one["changes"]) for one in behind["origins"]]
    assert [text.rpartition(" ")[2] for text in matrix["c"] if text != NOTHING] == changes


HOSTILE = (
    "<img src=x onerror=\"window.owned = 'image'\">",
    "</td></script><script>window.owned = 'script'</script>",
    "<svg onload=\"window.owned = 'svg'\"><a href=\"javascript:window.owned = 'link'\">x</a></svg>",
    "<link rel=stylesheet href=//127.0.0.1:1/owned.css><style>*{display:none}</style>",
    "<iframe src=//127.0.0.1:1/ srcdoc=\"<script>top.owned = 'frame'</script>\"></iframe>",
    "<form action=//127.0.0.1:1/><input autofocus onfocus=\"window.owned = 'form'\"></form>",
    "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe\x1b[2J\x00\r\nevent: state\ndata: {}\n\n",
)
"""What a page that took a value for markup would run, load or show as something else."""


def test_a_hostile_value_is_text_and_nothing_else(at: Site, hub: ServedHub, page: OpenPage) -> None:
    """Whoever may write a row must not run anything at an operator's, nor learn who looks at it."""
    a, b, *_ = at.replicas.values()
    for text in HOSTILE:
        for one in (a, b):
            key = text.replace(".", "")  # a scripted replica takes what is before it for a table
            one.write(key, f"{one.name} {text} {'x' * 5_000}")
        b.send_bytes(text.encode())
        hub.takes(a, b)
        hub.brings(a, b)
    shows(page, "gnp.exe")
    page.page.reload()  # the same by its other way: not as events, but as what is recorded
    is_filled(page)
    shows(page, "gnp.exe")

    shown = page.page.locator("#conflicts")
    for text in HOSTILE[:-1]:
        assert text in shown.inner_text()
    assert page.page.evaluate("window.owned") is None
    assert shown.locator("img, script, svg, a, link, style, iframe, form, input").count() == 0
    assert all(url.startswith(address(hub)) for url in page.fetched)
    assert page.complaints == []
    assert not page.is_wider_than_the_screen()


def test_the_picture_of_the_readme(hub: ServedHub, browser: Browser, tmp_path: Path) -> None:
    """`SLACKWATER_SCREENSHOT=docs/console.png` makes it anew; it must stay small."""
    picture = Path(SCREENSHOT or tmp_path / "console.png")
    with opened_page(browser, address(hub), (1100, 900)) as page:
        is_filled(page)
        page.page.wait_for_timeout(5_000)  # two states, for the rates

        page.page.screenshot(path=picture)

    assert picture.stat().st_size < 200_000
