"""`quarantine`: records the hub could not process, and what to do with them."""

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from checkpoints.reading.quarantined_rows import names_no_row, written_since
from checkpoints.reading.reader import Reader
from streaming.cli.appends import appends
from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, Limit, Seen, opened
from streaming.config.config import Config
from streaming.core.model.command import CommandName
from streaming.core.records.record import Reason
from streaming.core.text.wording import as_count
from streaming.facts.consumers.divergent import DivergentRow, kept_different
from streaming.facts.history.quarantine import (
    kept_ids,
    quarantine_document,
    quarantined_record,
    utf8,
)
from streaming.facts.names import names_of, rid_of_any
from streaming.terminal.output import (
    write_error,
    write_json,
    write_line,
    write_pairs,
    write_sentence,
    write_table,
)

NAMED = 20
"""How many records that are left out are named."""

SHOWN_BYTES = 2 * 2**20
"""How many bytes of a record are shown to a person."""

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Records the hub could not process."
)

Ids = Annotated[
    list[str] | None, typer.Argument(metavar="[ID...]", help="<rid>-<offset>, as listed.")
]
OneId = Annotated[str, typer.Argument(metavar="ID", help="<rid>-<offset>, as listed.")]
OfReason = Annotated[Reason | None, typer.Option("--reason", help="Of this reason.")]
OfReplica = Annotated[str | None, typer.Option("--replica", help="Of this replica.")]
All = Annotated[bool, typer.Option("--all", help="All that are kept.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it, for records that are not named by ID.")]
Everything = Annotated[bool, typer.Option("--all", help="Released and dropped ones too.")]


@app.command("list")
@cannot_say()
def list_(
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    reason: OfReason = None,
    replica: OfReplica = None,
    everything: Everything = False,
    limit: Limit = 100,
) -> None:
    """List the records in quarantine, the newest last."""
    configured, reader = opened(config)
    rid = None if replica is None else rid_of_any(configured, replica)
    equal = {"reason": reason, "rid": rid}
    shown, total = reader.quarantine_page(equal, limit, everything=everything, values=as_json)
    if as_json:
        write_json([quarantine_document(row) for row in shown])
        return
    names = names_of(configured)
    write_table(
        ("id", "replica", "time", "reason", "CSN", "what is wrong", "action"),
        (
            (
                row["id"],
                names.get(row["rid"], row["rid"]),
                row["time"],
                row["reason"],
                row["csn"],
                row["detail"],
                row["action"],
            )
            for row in shown
        ),
    )
    write_line(f"{len(shown)} of {as_count(total, 'record')}")
    if total > len(shown):
        write_sentence(
            f"{as_count(total - len(shown), 'older record')} left out: --limit N shows more,"
            " --reason and --replica fewer at once"
        )


@app.command()
@cannot_say()
def show(id_: OneId, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Show one record with its original bytes."""
    configured, reader = opened(config)
    row = quarantined_record(reader, id_)
    if as_json:
        write_json(quarantine_document(row))
    else:
        write_pairs(_pairs(row, configured))


@app.command()
@appends(CommandName.RELEASE, when="with IDs, or with --yes")
def release(
    *,
    ids: Ids = None,
    reason: OfReason = None,
    replica: OfReplica = None,
    everything: All = False,
    yes: Yes = False,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    seen: Seen = None,
) -> None:
    """Release records: the hub makes them changes of its own, with new CSNs.

    Choose them by ID, or with --reason and --replica, or take --all; without ID only with --yes.
    Late, reused, purged and ended ones too: their replica's rows were refreshed meanwhile, and a
    released change goes to every replica like any other. One whose row was written anew since is
    only released by ID, because it takes the newer one's place.
    """
    configured, reader = opened(config)
    chosen = _chosen(configured, reader, ids, reason, replica, everything=everything)
    newer = written_since(reader) if chosen and not ids else set()
    left_out = [id_ for id_ in chosen if id_ in newer]
    chosen = [id_ for id_ in chosen if id_ not in newer]
    _append_commands(reader, CommandName.RELEASE, chosen, seen, yes=yes or bool(ids), json=as_json)
    if left_out:
        write_error(_left_out_text(left_out))


@app.command()
@appends(CommandName.DROP, when="with IDs, or with --yes")
def drop(
    *,
    ids: Ids = None,
    reason: OfReason = None,
    replica: OfReplica = None,
    everything: All = False,
    yes: Yes = False,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Drop records from quarantine; their bytes stay in the table.

    Choose them by ID, or with --reason and --replica, or take --all; without ID only with --yes.
    A row that still differs at its origin is refreshed there. One that cannot be, because no record
    can have its key, is left out.
    """
    configured, reader = opened(config)
    chosen = _chosen(configured, reader, ids, reason, replica, everything=everything)
    named, tables = set(chosen), configured.table_map()
    stuck, unknown = list[DivergentRow](), Counter[str]()
    for one in kept_different(configured, reader):
        if one.id in named and names_no_row(one.table, one.key, tables):
            stuck.append(one)
        elif one.id in named and (one.key is None or one.code == Reason.KEY):
            unknown[one.replica] += 1
    left_out = {one.id for one in stuck}
    chosen = [id_ for id_ in chosen if id_ not in left_out]
    if chosen or not stuck:
        _append_commands(reader, CommandName.DROP, chosen, None, yes=yes or bool(ids), json=as_json)
    if stuck:
        write_error(_stuck_text(stuck))
    if not as_json:
        _warn_of_unknown_rows(unknown)
    if ids and stuck:
        raise typer.Exit(1)


def _chosen(
    config: Config,
    reader: Reader,
    ids: list[str] | None,
    reason: Reason | None,
    replica: str | None,
    *,
    everything: bool,
) -> list[str]:
    if not (ids or reason or replica or everything):
        raise typer.BadParameter("name records by ID, --reason and --replica, or --all")
    rid = None if replica is None else rid_of_any(config, replica)
    return kept_ids(reader, ids=ids or (), reason=reason, rid=rid)


def _left_out_text(ids: list[str]) -> str:
    """Name the first records that are not released, because a newer row would be lost by it."""
    return (
        f"{as_count(len(ids), 'record')} left out, because the row was written anew since:"
        f" {_named(ids)}; look at each with `slackwater quarantine show`, then drop it, or release"
        " it by its ID"
    )


def _named(ids: list[str]) -> str:
    return ", ".join(ids[:NAMED]) + (", ..." if ids[NAMED:] else "")


def _append_commands(
    reader: Reader, command: CommandName, ids: list[str], seen: int | None, *, yes: bool, json: bool
) -> None:
    from streaming.cli.command import append_commands  # noqa: PLC0415  # reading does without

    if yes:
        append_commands(reader, command, ids, seen, as_json=json)
    elif json:
        write_json({"command": command, "ids": ids, "numbers": {}})
    else:
        records = as_count(len(ids), "record")
        write_sentence(
            f"{records} chosen. Nothing is done yet: add --yes to {command} what is chosen"
        )


def _stuck_text(rows: list[DivergentRow]) -> str:
    """Name the first records whose row stays in its database whatever the hub sends."""
    named = _named([one.id for one in rows])
    of = " and ".join(sorted({one.replica for one in rows}))
    return (
        f"{as_count(len(rows), 'record')} left out, because nothing can be sent back for a key that"
        f" no record can have, and the row would differ in silence: {named}; correct or delete the"
        f" row in the database of {of}, and its record is out of the way"
    )


def _warn_of_unknown_rows(unknown: Mapping[str, int]) -> None:
    """Say which replicas may keep rows that nobody can set right: no record can name them."""
    for name, count in sorted(unknown.items()):
        write_sentence(
            f"{as_count(count, 'record')} of {name} name no row that could be sent back: what they"
            " wrote stays in its database as it is, and `level` counts it no more; delete it there,"
            f" or `slackwater reinit {name}` fills the database anew"
        )


def _pairs(row: dict[str, Any], config: Config) -> list[tuple[str, object]]:
    head = (row["value"] or b"")[:SHOWN_BYTES]
    text = utf8(head)
    return [
        ("id", f"{row['id']}: {row['topic']}, offset {row['offset']}"),
        ("replica", names_of(config).get(row["rid"], row["rid"])),
        ("time", row["time"]),
        ("session", row["session"]),
        ("reason", row["reason"]),
        ("detail", row["detail"]),
        ("CSN", row["csn"]),
        ("transaction", row["prim_csn"]),
        ("row", f"{row['table']} {row['key']}" if row["table"] else None),
        ("action", f"{row['action']} in batch {row['action_batch']}"),
        ("bytes", _size_text(row, len(head), is_text=text is not None)),
        ("SHA-256", row["sha256"]),
        ("", text if text is not None else repr(head)),
    ]


def _size_text(row: dict[str, Any], shown: int, *, is_text: bool) -> str:
    if row["value"] is None:
        return "not kept"
    size = row["bytes"] or len(row["value"])
    text = f"{size}" if is_text else f"{size}, not UTF-8"
    if shown == size:
        return text
    where = f": all are in {row['topic']} at offset {row['offset']}" if row["sha256"] else ""
    return f"{text}; the first {shown}{where}"
