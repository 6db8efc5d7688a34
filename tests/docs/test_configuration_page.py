"""docs/configuration.md is made from the sections' docstrings."""

from streaming.cli.config_page import PLACE, page
from streaming.cli.start.config import fields


def test_the_page_is_current() -> None:
    """`make docs` writes it; an operator looks there before anywhere else."""
    assert PLACE.read_text("utf-8") == page()


def test_every_field_says_what_it_means() -> None:
    """A field without a docstring would be an empty cell."""
    assert [one.path for one in fields() if not one.meaning] == []
