"""Claims about the text of files that people edit."""

import pytest

from streaming.core.model.errors import ConfigError
from streaming.core.text.edited_text import edited_text


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    """Windows' editors write one before UTF-8, and nobody sees it."""
    assert edited_text(b"\xef\xbb\xbf[hub]\n", "hub.toml") == "[hub]\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_another_unicode_encoding_is_refused_by_name(encoding: str) -> None:
    """A shell's redirection on Windows writes UTF-16, and the file looks right in an editor."""
    with pytest.raises(ConfigError, match=r"hub.toml (is in UTF-|has NUL bytes, as UTF-16)") as no:
        edited_text("[hub]\n".encode(encoding), "hub.toml")

    assert str(no.value).endswith("save it as UTF-8")


def test_a_byte_that_is_not_utf8_is_named_with_its_line() -> None:
    """Latin-1 is found by the first umlaut of a comment."""
    with pytest.raises(ConfigError, match=r"hub.toml is not UTF-8, by byte 0xfc in line 2"):
        edited_text("[hub]\n# für\n".encode("latin-1"), "hub.toml")
