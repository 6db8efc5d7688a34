"""Text as SQLite stores it: any bytes, of which the wire can have only valid Unicode.

Text that is not valid must be neither an error nor another text: two keys would become one.
"""

import sqlite3

from streaming.core.model.errors import WireError

UTF_8 = "UTF-8"
"""The usual encoding of a database; its bytes reach a client as they are."""


def read_as_stored(connection: sqlite3.Connection) -> None:
    """Read text of this connection so that no two texts become one.

    Each byte that is no UTF-8 is one of the lone surrogates U+DC80 to U+DCFF.
    """
    connection.text_factory = lambda stored: stored.decode(errors="surrogateescape")


def stored_bytes(text: str) -> bytes:
    """The bytes of text that was read so."""
    return text.encode(errors="surrogateescape")


def encoding_of(connection: sqlite3.Connection) -> str:
    """The encoding of the database's text: UTF-8, UTF-16le or UTF-16be."""
    return str(connection.execute("PRAGMA encoding").fetchone()[0])


def survives_sql(value: str) -> str:
    """An SQL condition, in a database of UTF-16: this text stays the same as UTF-8.

    Half of a surrogate pair does not: SQLite makes another character of it and of what follows.
    """
    return f"replace({value}, 'a', 'a') = {value} COLLATE BINARY"


def utf16_text(text: str) -> str:
    """This text, in a database of UTF-16; WireError: SQLite would store another one there."""
    for changed in ("\ufffe", "\uffff"):
        if changed in text:
            raise WireError(
                f"a database in UTF-16 cannot hold U+{ord(changed):04X}: make it one in UTF-8"
            )
    return text
