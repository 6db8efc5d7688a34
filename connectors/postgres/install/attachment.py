"""What the database says of its attachment: as which replica, and what was before."""

from dataclasses import dataclass

from psycopg.rows import dict_row

from connectors.postgres.check.rights import check_rights, may_use_schema
from connectors.postgres.format_number import FORMAT
from connectors.postgres.install.system import read_capture
from connectors.postgres.sql import Session
from streaming.core.model.errors import StateError


@dataclass(frozen=True, slots=True)
class Attachment:
    """The row `slackwater.attachment`; `server_name`: of the slot and of the origin."""

    format: int
    replica: str
    server_name: str


def read_attachment(session: Session) -> Attachment | None:
    """The row; None: nobody has begun to attach this database. StateError: it may not be read."""
    if not may_use_schema(session):
        check_rights(session)
    (there,) = session.execute("SELECT to_regclass('slackwater.attachment')").fetchone() or (None,)
    if there is None:
        return None
    with session.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute("SELECT * FROM slackwater.attachment").fetchone()
    if row is None:
        return None
    if row["format"] > FORMAT:
        raise StateError(
            f"the tables of schema slackwater are of format {row['format']}, this version knows"
            f" {FORMAT}: upgrade it"
        )
    return Attachment(row["format"], row["replica"], row["server_name"])


def attached(session: Session) -> Attachment:
    """The attachment of a database that is a replica; StateError: it is none."""
    found = read_attachment(session)
    if found is None or read_capture(session) is None:
        raise StateError(
            "the database is not attached to a replica: run `slackwater attach` with its DSN and"
            " --replica NAME first"
        )
    return found
