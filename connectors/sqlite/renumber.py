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
    uncarried = {csn for (csn,) in connection.execute("SELECT csn FROM _slackwater_uncarried")}
    primaries, changes = dict[str, str](), 0
    for id_, kind, csn, prim_csn in rows:
        new_csn = None
        if kind == "change":
            new_csn, generator = generator.next(clock_s)
            changes += 1
            if csn == prim_csn:
                primaries[csn] = new_csn
            if csn in uncarried:
                connection.execute(
                    "UPDATE _slackwater_uncarried SET csn = ? WHERE csn = ?", (new_csn, csn)
                )
        connection.execute(
            "UPDATE _slackwater_journal SET csn = ?, prim_csn = ?, opno = ? WHERE id = ?",
            (new_csn, primaries.get(prim_csn, prim_csn), opno + changes if new_csn else None, id_),
        )
    if not changes:
        return 0
    (open_group,) = connection.execute("SELECT prim_csn FROM _slackwater_origin").fetchone()
    connection.execute(
        "UPDATE _slackwater_origin SET time_s = ?, sequence = ?, opno = ?, prim_csn = ?",
        (
            generator.time_s,
            generator.sequence,
            opno + changes,
            primaries.get(open_group, open_group),
        ),
    )
    return changes


def opno_before(connection: sqlite3.Connection, after: int) -> int:
    """The opno before that of the first change behind this journal row, which they keep so."""
    (opno,) = connection.execute(
        "SELECT coalesce(min(opno), 1) - 1 FROM _slackwater_journal"
        " WHERE kind = 'change' AND id > ?",
        (after,),
    ).fetchone()
    return int(opno)
