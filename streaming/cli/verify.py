"""`verify`: audit the state from the changelog alone; exit 0 if it is sound."""

import typer

from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath
from streaming.cli.output import as_count, write_json, write_line, write_sentence, write_table
from streaming.cli.replay import SHOWN, From, To, cannot_say
from streaming.config.config import load
from streaming.core.replay.span import parse_moment


def verify(
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    begin: From = None,
    end: To = None,
) -> None:
    """Audit what the hub recorded; a running hub is not disturbed.

    Everything is judged again; of every record that was read some table must have a trace, no CSN
    may be judged twice, every RUV must end where the changelog does, and the full state must follow
    from the changelog. Exit 0 if all that holds, 1 if not, 2 if that cannot be said.
    """
    from streaming.facts.past_rows import past  # noqa: PLC0415  # they import Spark
    from streaming.replay.answer import choose  # noqa: PLC0415
    from streaming.replay.session import reading  # noqa: PLC0415
    from streaming.replay.verify import verify as audited  # noqa: PLC0415

    with cannot_say():
        configured = load(config)
        first, last = (None if text is None else parse_moment(text) for text in (begin, end))
        with past(configured) as store:
            chosen = choose(store, first, last)
            with reading(configured, store, chosen.marks) as read:
                audit = audited(store, chosen, read)
    if as_json:
        write_json(audit.document())
    else:
        what = f"{as_count(audit.records, 'record')}, {as_count(audit.changes, 'change')} and"
        what += f" {as_count(audit.rows, 'row')}"
        epochs = f"hub epochs {audit.from_epoch} to {audit.to_epoch}"
        how = "sound" if audit.is_sound else f"not sound, {as_count(audit.count, 'finding')}"
        write_sentence(f"{how}: {what} of {epochs}, audited in {audit.seconds:.1f} s")
        if audit.findings:
            shown = audit.findings[:SHOWN]
            write_line()
            write_table(
                ("check", "hub epoch", "where", "what is wrong"),
                ((one.check, one.hub_epoch, one.where, one.detail) for one in shown),
            )
    if not audit.is_sound:
        raise typer.Exit(1)
