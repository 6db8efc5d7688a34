"""The text of a file that people edit, whatever their editor puts before it."""

import codecs

from streaming.core.model.errors import ConfigError

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # it begins as UTF-16's does
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def edited_text(data: bytes, source: str) -> str:
    """The text, without a byte order mark; ConfigError says in which encoding it is, if not UTF-8.

    Windows' editors begin UTF-8 with a mark, and its shells write UTF-16.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            raise ConfigError(f"{source} is in {encoding}: save it as UTF-8")
    text = data.removeprefix(codecs.BOM_UTF8)
    if b"\x00" in text:
        raise ConfigError(f"{source} has NUL bytes, as UTF-16 has: save it as UTF-8")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{source} is not UTF-8, by byte 0x{text[error.start]:02x} in line {line}: save it as"
            " UTF-8"
        ) from None
