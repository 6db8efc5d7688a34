"""What a foreign key's action writes belongs to the statement that fired it: one transaction.

SQLite runs an action between the BEFORE and the AFTER trigger of the parent's row, so its changes
stand in the journal before the parent's own, each by itself. The BEFORE trigger notes where the
journal ended; what is behind that when the AFTER trigger has captured the row is of one statement.
A statement that writes several parents makes a transaction of each: no trigger sees its end.

If a statement leaves a row out after its BEFORE trigger, the note stays, and the next BEFORE
trigger of that row replaces it; an AFTER trigger never fires without its own.
"""
# ruff: noqa: S608 every expression is our own

from connectors.sqlite import sql

TABLES = {
    "_slackwater_cascade": """CREATE TABLE _slackwater_cascade (
  "table" TEXT NOT NULL,  -- of a row that is being written
  key TEXT NOT NULL,  -- its key as captured, or 'insert'
  from_id INTEGER NOT NULL,  -- where the journal ended before
  to_id INTEGER,  -- where it ended behind what the foreign keys' actions wrote
  PRIMARY KEY ("table", key)
)""",
    "_slackwater_slots": """CREATE TABLE _slackwater_slots (
  place INTEGER PRIMARY KEY,
  id INTEGER NOT NULL UNIQUE  -- the journal's rows of a statement, in their order
)""",
    "_slackwater_moved": """CREATE TABLE _slackwater_moved (
  place INTEGER PRIMARY KEY,  -- what is to stand there, the parent first
  "table" TEXT,
  key TEXT,
  op TEXT,
  before TEXT,
  after TEXT
)""",
}

BEGIN, OWN, END, END_FIRST = "begin", "own", "end", "end_first"
"""Operations of the view: before the row is written, behind the actions, behind its capture."""

_NOTED = """"table" = NEW."table" AND key = NEW.key"""
_FROM = f"(SELECT from_id FROM _slackwater_cascade WHERE {_NOTED} AND to_id > from_id)"
_TO = f"(SELECT to_id FROM _slackwater_cascade WHERE {_NOTED})"
_ALONE = "(SELECT depth FROM _slackwater_origin) = 0"
_CHANGES = f"_slackwater_journal WHERE kind = 'change' AND id > {_FROM}"
_LAST = "(SELECT coalesce(max(id), 0) FROM _slackwater_journal)"
_CONTENT = '"table", key, op, before, after'
_IS_LATER = f"""id <= {_TO} AND NOT EXISTS (
    SELECT 1 FROM _slackwater_journal own WHERE own.id > {_TO}
      AND own."table" = _slackwater_journal."table" AND own.key = _slackwater_journal.key)"""
"""Goes behind the row's own changes: what an action wrote, but for a row that gave it its key."""

VIEW = {
    "_slackwater_actions": """CREATE VIEW _slackwater_actions (op, "table", key)
AS SELECT NULL, NULL, NULL WHERE 0""",
    "_slackwater_actions_begin": f"""CREATE TRIGGER _slackwater_actions_begin
INSTEAD OF INSERT ON _slackwater_actions WHEN NEW.op = '{BEGIN}'
BEGIN
  DELETE FROM _slackwater_cascade WHERE {_NOTED};
  INSERT INTO _slackwater_cascade ("table", key, from_id) VALUES (NEW."table", NEW.key, {_LAST});
END""",
    "_slackwater_actions_own": f"""CREATE TRIGGER _slackwater_actions_own
INSTEAD OF INSERT ON _slackwater_actions WHEN NEW.op = '{OWN}'
BEGIN
  UPDATE _slackwater_cascade SET to_id = {_LAST} WHERE {_NOTED};
END""",
    "_slackwater_actions_end": f"""CREATE TRIGGER _slackwater_actions_end
INSTEAD OF INSERT ON _slackwater_actions WHEN NEW.op IN ('{END}', '{END_FIRST}')
BEGIN
  DELETE FROM _slackwater_journal WHERE kind = 'commit' AND id > {_FROM} AND {_ALONE};
  UPDATE _slackwater_journal SET prim_csn = (SELECT csn FROM {_CHANGES} ORDER BY id LIMIT 1)
  WHERE kind = 'change' AND id > {_FROM} AND {_ALONE};
  INSERT INTO _slackwater_slots (id)
  SELECT id FROM {_CHANGES} AND NEW.op = '{END_FIRST}' ORDER BY id;
  INSERT INTO _slackwater_moved ({_CONTENT})
  SELECT {_CONTENT} FROM {_CHANGES} AND NEW.op = '{END_FIRST}' ORDER BY {_IS_LATER}, id;
  UPDATE _slackwater_journal SET ({_CONTENT}) = (
    SELECT m."table", m.key, m.op, m.before, m.after
    FROM _slackwater_slots s JOIN _slackwater_moved m ON m.place = s.place
    WHERE s.id = _slackwater_journal.id
  ) WHERE id IN (SELECT id FROM _slackwater_slots);
  DELETE FROM _slackwater_slots;
  DELETE FROM _slackwater_moved;
  INSERT INTO _slackwater_journal (at, kind, prim_csn, epoch)
  SELECT {sql.NOW_MS}, 'commit', (SELECT prim_csn FROM {_CHANGES} ORDER BY id LIMIT 1), epoch
  FROM _slackwater_origin WHERE depth = 0 AND {_FROM} IS NOT NULL;
  DELETE FROM _slackwater_cascade WHERE {_NOTED};
END""",
}
"""A view of its own: SQLite compiles its triggers with the writes of parents alone."""


def statement(op: str, table: str, key: str) -> str:
    """The statement of a trigger for one of these operations; `key`: an expression."""
    return (
        'INSERT INTO _slackwater_actions (op, "table", key)'
        f" VALUES ({sql.string(op)}, {sql.string(table)}, {key})"
    )
