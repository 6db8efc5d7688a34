"""A page in a real Chromium: what it fetched, what it complained of, what axe says of it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import axe_playwright_python
from playwright.sync_api import Browser, Page, sync_playwright

AXE = (Path(axe_playwright_python.__path__[0]) / "axe.min.js").read_text(encoding="utf-8")

_ARGUMENTS = [
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
]

PHONE, DESKTOP = (390, 844), (1440, 900)
Scheme = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class OpenPage:
    """A page, with its complaints on the console and the addresses that it fetched."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Listen before anything is loaded."""
        self.page.on("console", lambda one: self._note(one.type, one.text))
        self.page.on("pageerror", lambda one: self.complaints.append(str(one)))
        self.page.on("request", lambda one: self.fetched.append(one.url))

    def _note(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.complaints.append(text)

    def texts(self, selector: str) -> list[str]:
        """The text of each element, read at one moment: the page puts others in their place."""
        found: list[str] = self.page.evaluate(
            "selector => [...document.querySelectorAll(selector)].map(one => one.innerText)",
            selector,
        )
        return [text.strip() for text in found]

    def focused(self) -> str:
        """The id, or else the class, of what has the focus."""
        found = self.page.evaluate("document.activeElement.id || document.activeElement.className")
        return str(found)

    def is_wider_than_the_screen(self) -> bool:
        """Return whether the page as a whole scrolls sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))

    def violations(self) -> list[str]:
        """What axe-core finds against WCAG 2.1 A and AA, and its best practices."""
        self.page.evaluate(AXE)
        found = self.page.evaluate("axe.run(document)")
        return [
            f"{one['id']}: {[node['target'] for node in one['nodes']]}"
            for one in found["violations"]
        ]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, without a window."""
    path = shutil.which("chromium")
    assert path, "chromium is not installed: `make programs`"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened_page(
    browser: Browser, url: str, size: tuple[int, int] = DESKTOP, scheme: Scheme = "light"
) -> Iterator[OpenPage]:
    """The page at an address, loaded."""
    width, height = size
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    found = OpenPage(page)
    try:
        page.goto(url)
        yield found
    finally:
        page.close()
