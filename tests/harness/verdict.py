"""The verdict over a hub that has ended: its tables and topics against what the replicas hold.

Read with deltalake alone, uncommitted rows included: after an orderly end there must be none.
"""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from checkpoints import query
from checkpoints.commit.purges import ruvs_of
from checkpoints.tables import TableName
from streaming.core.conflict.judge import Verdict
from streaming.core.model.csn import rid_of
from streaming.core.model.ruv import largest_of
from tests.harness.commits import newest_entry
from tests.harness.scripted import Row, ScriptedReplica
from tests.harness.site import Site

_known: dict[tuple[Path, TableName], tuple[object, list[dict[str, Any]]]] = {}


def rows_of(state: Path, name: TableName, *order: str) -> list[dict[str, Any]]:
    """All rows of a table of the state, in this order; read only when it has others."""
    version = newest_entry(state / name / "_delta_log")
    known, rows = _known.get((state, name), (None, []))
    if version is None or version != known:
        table = query.select(query.open_table(state, name), name)
        rows = table.to_pylist(maps_as_pydicts="strict")
        _known[state, name] = version, rows
    return sorted(map(dict, rows), key=lambda row: [row[column] for column in order])


def check(site: Site) -> None:
    """All of it; every replica must have caught up."""
    check_every_change_once(site)
    check_conflicts(site)
    check_order(site)
    check_commits(site)
    check_ruv(site)
    check_records(site)
    check_rows(site)
    check_materialized(site)


def check_every_change_once(site: Site) -> None:
    """Every committed change is in changelog or quarantine, once; an uncommitted in neither.

    One whose function failed is in both; the hub's own changes are in no replica's topic.
    """
    hub = site.config().hub.rid
    judged = Counter(
        row["csn"]
        for row in changes_of(site)
        if row["rid"] != hub and row["verdict"] != Verdict.QUARANTINED
    )
    kept = Counter(
        row["csn"] for row in rows_of(site.state, TableName.QUARANTINE) if row["action"] == "kept"
    )
    for replica in site.replicas.values():
        committed = Counter(change.csn for change in replica.committed)
        for change in replica.published:
            found = judged[change.csn] + kept[change.csn]
            expected = committed[change.csn]
            assert found == expected, f"{change} is {found} times in changelog and quarantine"
    known = {change.csn for r in site.replicas.values() for change in r.published}
    strange = {csn for csn in judged if csn not in known}
    assert not strange, f"nobody wrote what the changelog holds: {strange}"


def check_conflicts(site: Site) -> None:
    """Every rejected change is in the conflicts, once; else only rows that a change overcame."""
    changes, found = changes_of(site), conflicts(site)

    assert [_place(row) for row in found if row["lost"] == "change"] == [
        _place(row) for row in changes if row["verdict"] == "rejected"
    ]
    overcame = {
        _place(row) for row in changes if row["verdict"] == "accepted" and row["cause"] is not None
    }
    assert {_place(row) for row in found if row["lost"] == "row"} <= overcame


def conflicts(site: Site) -> list[dict[str, Any]]:
    """The conflicts in hub order, each as it was last written."""
    rows = rows_of(site.state, TableName.CONFLICTS, "hub_epoch", "place", "batch")
    return list({row["id"]: row for row in rows}.values())


def _place(row: dict[str, Any]) -> tuple[int, int, str]:
    lost_or_judged = row.get("csn") or row["loser_csn" if row["lost"] == "change" else "winner_csn"]
    return row["hub_epoch"], row["place"], lost_or_judged


def check_order(site: Site) -> None:
    """Within a hub epoch the places of the changelog have no hole and no repeat."""
    places: dict[int, list[int]] = {}
    for row in rows_of(site.state, TableName.CHANGELOG, "hub_epoch", "place"):
        places.setdefault(row["hub_epoch"], []).append(row["place"])
    for hub_epoch, found in places.items():
        assert found == list(range(len(found))), f"places of hub epoch {hub_epoch}: {found}"


def check_commits(site: Site) -> None:
    """Batches follow each other, each planned and committed once; hub epochs rise by one."""
    rows = rows_of(site.state, TableName.EPOCHS, "batch", "kind")
    commits = [row for row in rows if row["kind"] == "commit"]
    plans = [row["batch"] for row in rows if row["kind"] == "plan"]
    assert [row["batch"] for row in commits] == list(range(len(commits)))
    assert plans == [row["batch"] for row in commits[1:]]
    epochs = [row["hub_epoch"] for row in commits]
    steps = {after - before for before, after in pairwise(epochs)}
    assert steps <= {0, 1}, f"hub epochs of the commits: {epochs}"
    logged = Counter((r["batch"], r["hub_epoch"]) for r in rows_of(site.state, TableName.CHANGELOG))
    entries = {(r["batch"], r["hub_epoch"]): r["counts"].get("entries", 0) for r in commits[1:]}
    assert logged == {place: count for place, count in entries.items() if count}


def check_ruv(site: Site) -> None:
    """The RUV of the last commit covers what the changelog holds, exactly."""
    largest: dict[int, str] = {}
    for row in changes_of(site):
        rid = rid_of(row["csn"])
        largest[rid] = max(row["csn"], largest.get(rid, ""))
    assert largest_of(ruvs_of(last_commit(site)["ruv"].items()).values()) == largest


def check_records(site: Site) -> None:
    """A record that was published again has the same bytes."""
    for name in site.replicas:
        contents: dict[str, set[bytes]] = {}
        for record_id, value in site.updates(name):
            contents.setdefault(record_id, set()).add(value)
        differing = [record_id for record_id, values in contents.items() if len(values) > 1]
        assert not differing, f"ids with more than one content in the topic of {name}: {differing}"


def check_rows(site: Site) -> None:
    """Every replica holds what the changelog's last accepted images are."""
    expected = rows_of_changelog(site)
    for name, replica in site.replicas.items():
        differing = replica.rows.items() ^ expected.items()
        assert not differing, f"{name} and the changelog hold different rows: {differing}"


def check_materialized(site: Site) -> None:
    """Every row of `rows` is a version of the changelog, and none that should be there is missing.

    It may be newer than the materialized epoch: a hub that dies after the merge does not note it.
    """
    upto = last_commit(site)["rows_epoch"]
    versions: dict[Row, list[tuple[int, str, str | None]]] = {}
    for change in changes_of(site):
        if change["verdict"] == "accepted":
            version = change["hub_epoch"], change["csn"], change["image"]
            versions.setdefault((change["table"], change["key"]), []).append(version)
    found = {(row["table"], row["key"]): row for row in rows_of(site.state, TableName.ROWS)}
    for key, known in versions.items():
        row = found.get(key, {"hub_epoch": 0, "csn": None, "image": None})
        expected = [one for one in known if one[0] <= max(upto, row["hub_epoch"])]
        if expected:
            assert (row["hub_epoch"], row["csn"], row["image"]) == expected[-1], (
                f"row {key} of `rows`"
            )


def rows_of_changelog(site: Site) -> dict[Row, str]:
    """The rows that the accepted changes make, one over the other."""
    rows: dict[Row, str] = {}
    for change in changes_of(site):
        row = change["table"], change["key"]
        if change["verdict"] == "accepted":
            rows.pop(row, None)
            if change["image"] is not None:
                rows[row] = change["image"]
    return rows


def check_level(replica: ScriptedReplica, site: Site) -> None:
    """The replica has been sent everything: its covers is the hub's epoch."""
    assert replica.position.covers == last_commit(site)["hub_epoch"]


def last_commit(site: Site) -> dict[str, Any]:
    """The last commit row."""
    rows = rows_of(site.state, TableName.EPOCHS, "batch", "kind")
    return [row for row in rows if row["kind"] == "commit"][-1]


def changes_of(site: Site) -> list[dict[str, Any]]:
    """Every judged change of the changelog, in hub order."""
    rows = rows_of(site.state, TableName.CHANGELOG, "hub_epoch", "place")
    return [row for row in rows if row["kind"] == "change"]
