"""The page of a hub that asks for a token, in a real Chromium."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.browser import OpenPage, chromium, opened_page
from tests.harness.served_port import port_of_a_hub

TOKEN = "a-token-that-nobody-guesses"


NEW = "another-that-nobody-guesses"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[OpenPage]:
    """The page, which does not know the token."""
    with (
        port_of_a_hub(tmp_path, f'token = "{TOKEN}"') as port,
        chromium() as browser,
        opened_page(browser, f"http://127.0.0.1:{port}/") as found,
    ):
        yield found


def give(page: OpenPage, token: str) -> None:
    """Type a token and send it."""
    page.page.locator("#token").fill(token)
    page.page.keyboard.press("Enter")


def test_the_page_asks_for_the_token_once(page: OpenPage) -> None:
    """What it gets for it is a cookie that no script reads and that no other site has sent."""
    page.page.locator("#access").wait_for()
    give(page, "another")
    page.page.locator("#refused", has_text="This is not the token.").wait_for()
    assert page.page.context.cookies() == []

    with page.page.expect_response(lambda one: one.url.endswith("/events") and one.ok):
        give(page, TOKEN)

    assert page.page.locator("#access").is_hidden()
    assert page.page.evaluate("document.cookie") == ""
    (cookie,) = page.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert TOKEN not in cookie["value"]
    with page.page.expect_response(lambda one: one.url.endswith("/events") and one.ok):
        page.page.reload()
    assert TOKEN not in "".join(page.fetched)


def test_a_token_that_is_replaced_is_asked_for(page: OpenPage, tmp_path: Path) -> None:
    """A page that is open shows nothing more to whoever has the old one only."""
    page.page.locator("#access").wait_for()
    with page.page.expect_response(lambda one: one.url.endswith("/events") and one.ok):
        give(page, TOKEN)
    file = tmp_path / "hub.toml"
    file.write_text(file.read_text().replace(TOKEN, NEW))

    page.page.locator("#access").wait_for()
    with page.page.expect_response(lambda one: one.url.endswith("/events") and one.ok):
        give(page, NEW)

    assert page.page.locator("#access").is_hidden()
