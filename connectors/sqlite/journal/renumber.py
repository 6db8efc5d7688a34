"""Gives changes that were never published new CSNs and opnos: nobody has seen the old ones."""

import sqlite3

from streaming.core.model.csn import Generator


def renumber(
    connection: sqlite3.Connection, after: int, generator: Generator, opno: int, clock_s: int
) -> int:
    """Number the changes behind this journal row anew, in their order and groups; how many.

    `generator`, `opno`: of the last change before them. In the caller's transaction, which also has
    the list of uncarried rows and the group that is open in the database right.
    """
    rows = connection.execute(
        "SELECT id, kind, csn, prim_csn FROM _slackwater_journal"
        " WHERE id > ? AND kind IN ('change', 'commit') ORDER BY id",
        (after,),
    ).fetchall()
    anew = dict[str, str]()
    for id_, kind, csn, prim_csn in rows:
        new_csn = None
        if kind == "change":
            new_csn, generator = generator.next(clock_s)
            anew[csn] = new_csn
        connection.execute(
            "UPDATE _slackwater_journal SET csn = ?, prim_csn = ?, opno = ? WHERE id = ?",
            (new_csn, anew.get(prim_csn, prim_csn), opno + len(anew) if new_csn else None, id_),
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
        (generator.time_s, generator.sequence, opno + len(anew), anew.get(open_group, open_group)),
    )
    return len(anew)


def opno_before(connection: sqlite3.Connection, after: int) -> int:
    """The opno before that of the first change behind this journal row, which they keep so."""
    (opno,) = connection.execute(
        "SELECT coalesce(min(opno), 1) - 1 FROM _slackwater_journal"
        " WHERE kind = 'change' AND id > ?",
        (after,),
    ).fetchone()
    return int(opno)
