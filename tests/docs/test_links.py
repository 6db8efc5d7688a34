"""What a page or a docstring points to is there: files, headings, scenarios."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PAGES = [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")]
SOURCES = [
    file
    for folder in ("streaming", "connectors", "checkpoints", "deploy", "tests")
    for suffix in ("py", "txt", "toml")
    for file in (CHECKOUT / folder).rglob(f"*.{suffix}")
]


def headings(page: Path) -> list[str]:
    """The headings of a page, without their numbers."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"^[\d.]+ ", "", text) for text in found]


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_a_link_leads_somewhere(page: Path) -> None:
    """A dead link costs every reader the search that its writer saved."""
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def citations() -> Iterator[tuple[str, str, str]]:
    """(file, page, heading) of each `docs/<page>.md, <heading>` in the sources."""
    for file in SOURCES:
        text = re.sub(r"\s*\n[\s#]*", " ", file.read_text(encoding="utf-8"))
        for page, heading in re.findall(r"docs/(\w+)\.md, ([A-Z][\w ?'-]*\w\??)", text):
            yield str(file.relative_to(CHECKOUT)), page, heading


@pytest.mark.parametrize(("file", "page", "heading"), [*citations()])
def test_a_citation_names_a_heading(file: str, page: str, heading: str) -> None:
    """Who reads a docstring finds the reason where it says; `file` tells where to mend it."""
    known = headings(CHECKOUT / "docs" / f"{page}.md")

    assert any(heading.startswith(one) for one in known), f"{file}: {heading}"
