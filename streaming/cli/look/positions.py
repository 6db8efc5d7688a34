"""`ruv` and `lacks`: the hub's RUVs, and what a consumer lacks of them."""

from typing import Annotated

import typer

from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, opened
from streaming.core.text.wording import as_count
from streaming.facts.consumers.lacks import AnchorPoint, ConsumerLacks, StartPoint, consumer_lacks
from streaming.facts.consumers.ruvs import acked_ruv, hub_ruvs
from streaming.facts.names import agreement_named
from streaming.terminal.output import write_json, write_line, write_pairs, write_table

AgreementName = Annotated[str, typer.Argument(metavar="AGREEMENT", help="The agreement's name.")]
OfAgreement = Annotated[
    str | None,
    typer.Option(
        "--agreement",
        metavar="AGREEMENT",
        help="The RUV that its consumer last acknowledged instead.",
    ),
]

OfDataset = Annotated[
    str | None, typer.Option("--dataset", metavar="DATASET", help="Of this data set only.")
]


@cannot_say()
def ruv(
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    agreement: OfAgreement = None,
    dataset: OfDataset = None,
) -> None:
    """Show the hub's RUV of each data set in the text form of 389 Directory Server."""
    configured, reader = opened(config)
    found = (
        hub_ruvs(reader, dataset)
        if agreement is None
        else acked_ruv(configured, reader, agreement, dataset)
    )
    if as_json:
        write_json(found.document())
        return
    for name, one_ruv in found.ruvs.items():
        if len(found.ruvs) > 1:
            write_line(f"data set {name}")
        write_line("\n".join(one_ruv.text()))


@cannot_say()
def lacks(
    agreement: AgreementName, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False
) -> None:
    """Show what a consumer lacks by its last acknowledgement, and where sending starts."""
    configured, reader = opened(config)
    found = consumer_lacks(configured, reader, agreement_named(configured, agreement))
    if as_json:
        write_json(found.document())
    else:
        _show(found)


def _show(found: ConsumerLacks) -> None:
    supplier, acked, anchor = found.supplier, found.acked, found.anchor
    reason = f"{_start_text(anchor)}, because {anchor.replica} is {anchor.need}" if anchor else ""
    write_pairs(
        [
            ("agreement", f"{found.agreement} to {found.consumer}, {found.state}"),
            ("hub", "\n".join([f"hub epoch {supplier.covers}", *supplier.ruv])),
            ("consumer", "\n".join([f"covers {acked.covers}", *acked.ruv])),
            ("anchor", reason or "none: no fresh change is lacking"),
            ("stop", "\n".join(found.stop)),
            ("to be sent", _to_be_sent(found)),
            *([("refused", found.refused.why)] if found.refused else []),
        ]
    )
    write_line()
    write_table(
        ("rid", "replica", "need", "start", "stop", "to be sent"),
        (
            (
                one.rid,
                one.replica,
                f"{one.need}, its own" if one.is_own else one.need,
                _start_text(one.start) if one.start else None,
                one.stop,
                one.changes,
            )
            for one in found.replicas
        ),
    )


def _to_be_sent(found: ConsumerLacks) -> str:
    changes = as_count(found.changes, "change")
    return f"{changes}, {as_count(found.refreshes, 'refresh', 'refreshes')}"


def _start_text(start: StartPoint | AnchorPoint) -> str:
    return f"{start.start} {start.csn}"
