"""Makes a replica an ordinary database again: each step of attaching is taken back, in reverse.

The slot goes first, because behind it the server keeps its log. Each step is found to be done, so
who was interrupted goes on.
"""

import time
from collections.abc import Iterator

from connectors.agent.attaching import InstallStep
from connectors.postgres.check.kept import saved_count
from connectors.postgres.install.attach import carry_out
from connectors.postgres.install.attachment import read_attachment
from connectors.postgres.install.system import read_capture
from connectors.postgres.names import PUBLICATION, local_origin, server_name
from connectors.postgres.sql import Session, literal, name, statement
from streaming.core.model.errors import StateError
from streaming.core.text.wording import as_count

RELEASED_S = 3.0
"""How long the end of a process of the server is waited for, which reads the slot."""

_WRITTEN = """WITH log AS (SELECT lsn, xid, get_byte(data, 0) AS kind, data
  FROM pg_logical_slot_peek_binary_changes(%(slot)s, NULL, NULL,
    'proto_version', '1', 'publication_names', %(publication)s)),
ended AS (SELECT xid FROM log WHERE kind = ascii('C') AND lsn > %(lsn)s::pg_lsn),
applied AS (SELECT xid FROM log
  WHERE kind = ascii('O') AND (position(convert_to(%(slot)s, 'UTF8') IN data) > 0
    OR position(convert_to(%(local)s, 'UTF8') IN data) > 0))
SELECT count(*) FROM log WHERE kind IN (ascii('I'), ascii('U'), ascii('D'), ascii('T'))
  AND xid IN (SELECT xid FROM ended) AND xid NOT IN (SELECT xid FROM applied)"""

_LEFT = """SELECT 'replication slot ' || slot_name FROM pg_replication_slots
  WHERE slot_name = %(name)s
UNION ALL SELECT 'publication ' || pubname FROM pg_publication WHERE pubname = %(publication)s
UNION ALL SELECT 'replication origin ' || roname FROM pg_replication_origin
  WHERE roname IN (%(name)s, %(local)s)
UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname = 'slackwater'"""


def check_published(session: Session) -> None:
    """StateError: the log has changes that are not known to be in the topic, or an agent runs."""
    if read_attachment(session) is None:
        return
    capture = read_capture(session)
    if capture is None or not _is_free(session, capture.slot):
        return
    values = {
        "slot": capture.slot,
        "local": local_origin(capture.slot),
        "publication": PUBLICATION,
        "lsn": capture.lsn,
    }
    (count,) = session.execute(_WRITTEN, values).fetchone() or (0,)
    if count:
        raise StateError(
            f"not published yet: {as_count(count, 'change')}, and no other replica would ever get"
            " them: run the agent until they are, or confirm with --discard-unpublished"
        )


def _is_free(session: Session, slot: str) -> bool:
    """Return whether the slot is there; StateError: an agent reads it.

    The server's process of an agent that has ended reads it for a moment longer.
    """
    query = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s"
    until_s = time.monotonic() + RELEASED_S
    while (found := session.execute(query, (slot,)).fetchone()) not in (None, (None,)):
        if time.monotonic() >= until_s:
            raise StateError(
                f"an agent runs: pid {found[0]} of the server reads slot {slot}; stop it first"
            )
        time.sleep(0.05)
    return found is not None


def check_saved(session: Session) -> None:
    """StateError: rows are saved in the schema that are nowhere else."""
    count = saved_count(session)
    if count:
        raise StateError(
            f"the database keeps {as_count(count, 'row')} that were overwritten and are nowhere"
            " else: write them to a file with `slackwater agent saved --export FILE --forget`,"
            " or only --forget them, first"
        )


def detach_steps(session: Session, replica: str | None) -> list[InstallStep]:
    """What is there to be removed; `replica` None: as the database says.

    StateError: it is another one's.
    """
    found = read_attachment(session)
    if found is not None and replica not in (None, found.replica):
        raise StateError(
            f"the database is attached as replica {found.replica}, not as {replica}: name that one"
        )
    names = _server_names(session, replica)
    slots = (step for one in names for step in _slot(session, one))
    both = (origin for one in names for origin in (one, local_origin(one)))
    origins = (step for origin in both for step in _origin(session, origin))
    return [*slots, *_publication(session), *origins, *_identities(session), *_schema(session)]


def _server_names(session: Session, replica: str | None) -> list[str]:
    """The names of slot and origin: as the database says, and as they follow from the replica's."""
    found = read_attachment(session)
    names = {found.server_name} if found is not None else set[str]()
    if replica is not None:
        names.add(server_name(session.info.dbname, replica))
    return sorted(names)


def _slot(session: Session, one: str) -> Iterator[InstallStep]:
    query = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
    if session.execute(query, (one,)).fetchone() is not None:
        drop = f"SELECT pg_drop_replication_slot({literal(one)})"
        yield InstallStep(f"replication slot {one}", (drop,))


def _publication(session: Session) -> Iterator[InstallStep]:
    query = "SELECT 1 FROM pg_publication WHERE pubname = %s"
    if session.execute(query, (PUBLICATION,)).fetchone() is not None:
        yield InstallStep(f"publication {PUBLICATION}", (f"DROP PUBLICATION {PUBLICATION}",))


def _origin(session: Session, one: str) -> Iterator[InstallStep]:
    query = "SELECT 1 FROM pg_replication_origin WHERE roname = %s"
    if session.execute(query, (one,)).fetchone() is not None:
        drop = f"SELECT pg_replication_origin_drop({literal(one)})"
        yield InstallStep(f"replication origin {one}", (drop,))


def _schema(session: Session) -> Iterator[InstallStep]:
    if session.execute("SELECT to_regnamespace('slackwater')").fetchone() != (None,):
        yield InstallStep("schema slackwater", ("DROP SCHEMA slackwater CASCADE",))


def _identities(session: Session) -> Iterator[InstallStep]:
    """The identity of each table as it was; of a table that is gone none."""
    there = session.execute("SELECT to_regclass('slackwater.identity')").fetchone()
    if there == (None,):
        return
    rows = session.execute(
        'SELECT i."table", i.identity::text, i.index FROM slackwater.identity i'
        ' JOIN pg_class c ON c.oid = to_regclass(i."table")'
        " WHERE c.relreplident <> i.identity ORDER BY 1"
    ).fetchall()
    for table, identity, index in rows:
        was = {"d": "DEFAULT", "n": "NOTHING", "f": "FULL"}.get(identity)
        before = was or f"USING INDEX {statement(name(index))}"
        what = f"REPLICA IDENTITY FULL of table {table}, which is {before} again"
        yield InstallStep(what, (f"ALTER TABLE {table} REPLICA IDENTITY {before}",))


def detach(session: Session, replica: str | None) -> list[str]:
    """Remove what there is; returns what that was. StateError: something is left.

    What was before is forgotten with the schema, so it goes when all identities are back.
    """
    names = _server_names(session, replica)
    schema = [*_schema(session)]
    steps = [step for step in detach_steps(session, replica) if step not in schema]
    done = carry_out(session, steps, "detach")
    left = [step.what for step in _identities(session)]
    if not left:
        done += carry_out(session, schema, "detach")
        left = [text for one in names for text in what_is_left(session, one)]
    if left:
        raise StateError(f"still there: {', '.join(left)}: detach again")
    return done


def what_is_left(session: Session, name_: str) -> list[str]:
    """What of an agent the server still has, by its catalogs; `name_`: of slot and origin."""
    values = {"name": name_, "local": local_origin(name_), "publication": PUBLICATION}
    rows = session.execute(_LEFT, values).fetchall()
    return [row[0] for row in rows]
