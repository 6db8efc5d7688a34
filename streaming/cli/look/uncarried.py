"""`conflicts list --kind uncarried`: rows that stand at their writer only, and what to do."""

from collections.abc import Sequence
from dataclasses import asdict

from checkpoints.reading.reader import Reader
from streaming.core.text.wording import as_count
from streaming.facts.consumers.divergent import DivergentRow, differing_text
from streaming.facts.history.uncarried import KeptImage, described
from streaming.terminal.output import write_json, write_line, write_sentence, write_table


def show(reader: Reader, rows: Sequence[DivergentRow], limit: int, *, as_json: bool) -> None:
    """The newest of these rows, what each remedy is for, and the commands that end it."""
    found = described(reader, rows[-limit:])
    if as_json:
        write_json([asdict(one) for one in found])
        return
    write_table(
        ("id", "replica", "table", "key", "reason", "since", "image in", "what is wrong"),
        (
            (
                one.id,
                one.replica,
                one.table,
                one.key or ("all rows" if one.table else None),
                one.reason,
                one.since,
                one.image,
                one.detail,
            )
            for one in found
        ),
    )
    write_line(f"{len(found)} of {differing_text(len(rows), rows)}")
    for reason, remedy in dict.fromkeys((one.reason, one.remedy) for one in found):
        write_sentence(f"{reason}: {remedy}")
    if found:
        write_sentence(
            "`slackwater quarantine release ID` makes the record a change of the hub for everybody;"
            " `slackwater quarantine drop ID` sends the row back as the hub has it"
        )
    alone = sum(one.image is KeptImage.DATABASE for one in found)
    if alone:
        write_sentence(
            f"{as_count(alone, 'image')} of these in the database only: a drop overwrites what"
            " stands there, which the agent saves before"
        )
