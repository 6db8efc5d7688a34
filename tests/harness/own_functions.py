"""What an application registers on its connections, as `slackwater agent --load` takes it."""

import sqlite3
from collections.abc import Callable

SCHEMA = """
CREATE TABLE items (
  id INTEGER PRIMARY KEY, name TEXT COLLATE by_length, price TEXT,
  dear GENERATED ALWAYS AS (is_dear(price)) STORED,
  note TEXT DEFAULT (greeting()), CHECK (is_named(name))
);
CREATE INDEX by_name ON items (name DESC);
CREATE INDEX by_weight ON items (weight(name));
CREATE TABLE seen (line TEXT);
CREATE VIEW shouted AS SELECT shout(name) AS line FROM items;
CREATE TRIGGER audit AFTER INSERT ON items BEGIN
  INSERT INTO seen SELECT line FROM shouted;
END;
CREATE TRIGGER audit_update AFTER UPDATE ON items BEGIN
  INSERT INTO seen VALUES (tag(NEW.name));
END;
"""
"""A schema that needs what `register` registers, in every place where a schema may."""

FUNCTIONS: dict[str, Callable[..., str | int]] = {
    "is_dear": lambda price: float(price or 0) > 100,
    "greeting": lambda: "hello",
    "is_named": lambda name: name != "",
    "weight": lambda name: len(name or ""),
    "shout": lambda name: (name or "").upper(),
    "tag": lambda name: f"<{name}>",
}


def register(connection: sqlite3.Connection) -> None:
    """As the application does when it connects."""
    for name, function in FUNCTIONS.items():
        connection.create_function(name, -1, function, deterministic=True)
    connection.create_collation("by_length", lambda one, other: len(one) - len(other))


def fails(_: sqlite3.Connection) -> None:
    """A function that cannot do its work."""
    raise RuntimeError("the extension is not installed")


def extend(connection: sqlite3.Connection) -> None:
    """A function that loads an extension, which is not there."""
    connection.enable_load_extension(True)  # noqa: FBT003 its parameter has no name
    connection.load_extension("/nowhere/extension")


NUMBER = 7
"""No function."""
