"""Creates the SQLite databases of deploy/compose.yaml: schema.py FOLDER NAME..."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS accounts (
    id INTEGER PRIMARY KEY NOT NULL,
    owner TEXT,
    balance TEXT,
    changed_at TEXT
);
CREATE TABLE IF NOT EXISTS notes (
    account_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    body TEXT,
    PRIMARY KEY (account_id, number)
);
"""


def create(file: Path) -> None:
    """The file with its tables; what is there stays."""
    with closing(sqlite3.connect(file)) as database:
        database.executescript(SCHEMA)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        create(Path(sys.argv[1]) / f"{name}.db")
