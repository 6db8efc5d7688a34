"""`quarantine`: records the hub could not process, and what to do with them."""

from typing import Annotated, Any

import typer

from checkpoints.reader import Reader
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, Limit, Seen, opened
from streaming.cli.output import as_count, write_json, write_line, write_pairs, write_table
from streaming.config.config import Config
from streaming.core.model.command import CommandName
from streaming.core.model.errors import HubError
from streaming.core.model.record import Reason
from streaming.facts.names import names_of, rid_of_any
from streaming.facts.quarantine import quarantine_document, quarantined, quarantined_record, utf8

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Records the hub could not process."
)

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="<rid>-<offset>, as listed.")]
OneId = Annotated[str, typer.Argument(metavar="ID", help="<rid>-<offset>, as listed.")]
OfReason = Annotated[Reason | None, typer.Option("--reason", help="Of this reason.")]
OfReplica = Annotated[str | None, typer.Option("--replica", help="Of this replica.")]
Everything = Annotated[bool, typer.Option("--all", help="Released and dropped ones too.")]


@app.command("list")
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
    found = quarantined(reader, reason=reason, rid=rid, everything=everything)
    shown = found[-limit:]
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
    write_line(f"{len(shown)} of {as_count(len(found), 'record')}")


@app.command()
def show(id_: OneId, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Show one record with its original bytes."""
    configured, reader = opened(config)
    row = quarantined_record(reader, id_)
    if as_json:
        write_json(quarantine_document(row))
    else:
        write_pairs(_pairs(row, configured))


@app.command()
def release(
    ids: Ids,
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    seen: Seen = None,
) -> None:
    """Release records: the hub makes them changes of its own, with new CSNs.

    Late, reused, purged and ended ones too: their replica's rows were refreshed meanwhile, and a
    released change goes to every replica like any other.
    """
    _, reader = opened(config)
    for id_ in ids:
        _refuse_unless_kept(quarantined_record(reader, id_))
    _append_commands(reader, CommandName.RELEASE, ids, seen, as_json=as_json)


@app.command()
def drop(ids: Ids, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Drop records from quarantine; their bytes stay in the table."""
    _, reader = opened(config)
    for id_ in ids:
        _refuse_unless_kept(quarantined_record(reader, id_))
    _append_commands(reader, CommandName.DROP, ids, None, as_json=as_json)


def _append_commands(
    reader: Reader, command: CommandName, ids: list[str], seen: int | None, *, as_json: bool
) -> None:
    from streaming.cli.command import append_commands  # noqa: PLC0415  # reading does without

    append_commands(reader, command, ids, seen, as_json=as_json)


def _refuse_unless_kept(row: dict[str, Any]) -> None:
    if row["action"] != "kept":
        raise HubError(f"{row['id']} was already {row['action']} in batch {row['action_batch']}")


def _pairs(row: dict[str, Any], config: Config) -> list[tuple[str, object]]:
    value = row["value"] or b""
    text = utf8(value)
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
        ("bytes", f"{len(value)}" if text is not None else f"{len(value)}, not UTF-8"),
        ("", text if text is not None else repr(value)),
    ]
