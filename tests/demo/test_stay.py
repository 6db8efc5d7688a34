"""A demonstration that stays: its page is there until somebody ends it, and then it concludes."""

from tests.demo.conftest import Stayed


def test_it_stays_with_its_page_until_it_is_interrupted(stayed: Stayed) -> None:
    """Whoever tries it looks at the page, writes to the files, and ends it with Ctrl-C."""
    assert stayed.page.code == 200
    assert "<title>Slackwater</title>" in stayed.page.text
    assert stayed.kept[1]["holds"]
