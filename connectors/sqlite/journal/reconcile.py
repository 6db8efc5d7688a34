"""Advances a database past what its own topic holds, before the hello (docs/wire.md, Start).

Changes that were never published may get new CSNs and opnos: nobody has seen the old ones.
"""

import logging
import sqlite3
from collections.abc import Container

from connectors.agent.own_topic import OwnTopic
from connectors.sqlite.transaction import atomic
from streaming.core.model.csn import Generator, parse

log = logging.getLogger(__name__)

MAX_ID = 2**63 - 1
"""The largest id that a row of the journal may have."""


def reconcile(connection: sqlite3.Connection, past: OwnTopic) -> str | None:
    """Move generator, epoch and opno past the topic; returns hello's `own`, for a loss too.

    What the topic holds counts as published, but for what of a torn transaction it holds. What it
    does not hold and could not hold any more,
    because its CSN or opno was passed or taken (a restored database wrote before its agent
    started), gets new ones: the old ones were never published.
    """
    with atomic(connection):
        torn = past.torn()
        connection.execute(
            "UPDATE _slackwater_position SET published = min(max(published, ?), ?)",
            (past.found, MAX_ID if torn is None else torn - 1),
        )
        move_past(connection, past)
        if _is_overtaken(connection, past):
            _renumber(connection, past)
        return _own(connection, past)


def move_past(connection: sqlite3.Connection, past: OwnTopic) -> None:
    """Move generator, epoch and opno past the topic, in the caller's transaction."""
    if past.csn:
        top = parse(past.csn)
        connection.execute(
            "UPDATE _slackwater_origin SET time_s = ?1, sequence = ?2"
            " WHERE (time_s, sequence) < (?1, ?2)",
            (top.time_s, top.sequence),
        )
    connection.execute(
        "UPDATE _slackwater_origin SET opno = max(opno, ?1),"
        " epoch = CASE WHEN epoch < ?2 THEN ?2 + 1 ELSE epoch END",
        (past.opno, past.epoch),
    )


def _is_overtaken(connection: sqlite3.Connection, past: OwnTopic) -> bool:
    """Return whether an unpublished change is not above everything in the topic."""
    row = connection.execute(
        "SELECT 1 FROM _slackwater_journal"
        " WHERE kind = 'change' AND id > (SELECT published FROM _slackwater_position)"
        " AND (csn <= ? OR opno <= ?) LIMIT 1",
        (past.csn, past.opno),
    ).fetchone()
    return row is not None


def _renumber(connection: sqlite3.Connection, past: OwnTopic) -> None:
    """Give all unpublished changes new CSNs and opnos, by sequence behind what the topic holds."""
    rid, time_s, sequence = connection.execute(
        "SELECT rid, time_s, sequence FROM _slackwater_origin"
    ).fetchone()
    published, opno = connection.execute(
        "SELECT published, max(?, trimmed_opno, coalesce((SELECT max(opno)"
        "  FROM _slackwater_journal WHERE id <= published), 0)) FROM _slackwater_position",
        (past.opno,),
    ).fetchone()
    generator = Generator(rid, time_s, sequence)
    changes = renumber(connection, published, generator, opno, 0, past.unfinished())
    log.warning("%d changes were renumbered after what the topic holds", changes)


def _own(connection: sqlite3.Connection, past: OwnTopic) -> str | None:
    """The largest own CSN up to which the database has everything that the topic holds."""
    if not past.missing:
        return past.own
    known = connection.execute(
        "SELECT (SELECT max(csn) FROM _slackwater_journal WHERE kind = 'change' AND csn < ?1"
        "  AND id <= published), CASE WHEN own < ?1 THEN own END,"
        " CASE WHEN trimmed_csn < ?1 THEN trimmed_csn END FROM _slackwater_position",
        (past.first_missing,),
    ).fetchone()
    return max((csn for csn in known if csn is not None), default=None)


def renumber(
    connection: sqlite3.Connection,
    after: int,
    generator: Generator,
    opno: int,
    clock_s: int,
    going_on: Container[str],
) -> int:
    """Number the changes behind this journal row anew, in their order and groups; how many.

    `generator`, `opno`: of the last change before them. `going_on`: the transactions of which the
    topic has the beginning, and gets the rest under the same name; the rest of any other becomes
    one of its own. In the caller's transaction, which also has the list of uncarried rows and the
    group that is open in the database right.
    """
    rows = connection.execute(
        "SELECT id, kind, csn, prim_csn FROM _slackwater_journal"
        " WHERE id > ? AND kind IN ('change', 'commit') ORDER BY id",
        (after,),
    ).fetchall()
    anew, names = dict[str, str](), dict[str, str]()
    for id_, kind, csn, prim_csn in rows:
        new_csn = None
        if kind == "change":
            new_csn, generator = generator.next(clock_s)
            anew[csn] = new_csn
            if prim_csn is not None and (prim_csn == csn or prim_csn not in going_on):
                names.setdefault(prim_csn, new_csn)
        new_prim = None if prim_csn is None else names.get(prim_csn, prim_csn)
        connection.execute(
            "UPDATE _slackwater_journal SET csn = ?, prim_csn = ?, opno = ? WHERE id = ?",
            (new_csn, new_prim, opno + len(anew) if new_csn else None, id_),
        )
    if not anew:
        return 0
    for row, csn in connection.execute("SELECT rowid, csn FROM _slackwater_uncarried").fetchall():
        if csn in anew:
            connection.execute(
                "UPDATE _slackwater_uncarried SET csn = ? WHERE rowid = ?", (anew[csn], row)
            )
    (open_group,) = connection.execute("SELECT prim_csn FROM _slackwater_origin").fetchone()
    connection.execute(
        "UPDATE _slackwater_origin SET time_s = ?, sequence = ?, opno = ?, prim_csn = ?",
        (generator.time_s, generator.sequence, opno + len(anew), names.get(open_group, open_group)),
    )
    return len(anew)


def cut_at(connection: sqlite3.Connection, after: int) -> set[str]:
    """The transaction that this journal row cuts, if it cuts one."""
    found = connection.execute(
        "SELECT prim_csn FROM _slackwater_journal WHERE kind = 'change' AND id > ?"
        " ORDER BY id LIMIT 1",
        (after,),
    ).fetchone()
    return {found[0]} if found and found[0] else set()


def opno_before(connection: sqlite3.Connection, after: int) -> int:
    """The opno before that of the first change behind this journal row, which they keep so."""
    (opno,) = connection.execute(
        "SELECT coalesce(min(opno), 1) - 1 FROM _slackwater_journal"
        " WHERE kind = 'change' AND id > ?",
        (after,),
    ).fetchone()
    return int(opno)
