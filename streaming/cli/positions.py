"""`ruv` and `lacks`: what the hub knows, and what a consumer lacks of it."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from checkpoints.reader import Reader
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, committed, names_of, opened
from streaming.cli.level import acked
from streaming.cli.output import write_json, write_line, write_pairs, write_table
from streaming.config.config import Config
from streaming.config.sections import AgreementConfig
from streaming.core.delivery.lack import Anchor, Gap, Lack, epochs_purged, lack, refused
from streaming.core.model.csn import rid_of
from streaming.core.model.errors import ConfigError
from streaming.core.model.ruv import Ruv
from streaming.core.model.state import AgreementState, HubState

AgreementName = Annotated[str, typer.Argument(metavar="AGREEMENT", help="The agreement's name.")]
OfAgreement = Annotated[
    str | None,
    typer.Option("--agreement", metavar="AGREEMENT", help="The consumer's own last word instead."),
]

OfDataset = Annotated[
    str | None, typer.Option("--dataset", metavar="DATASET", help="Of this data set only.")
]


def ruv(
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    agreement: OfAgreement = None,
    dataset: OfDataset = None,
) -> None:
    """Show the hub's RUV of each data set in the text form of 389 Directory Server."""
    configured, reader = opened(config)
    hub = committed(reader)
    covers, known = hub.hub_epoch, _picked(hub, dataset)
    if agreement is not None:
        one = _agreement(configured, agreement)
        state, served = _state_of(hub, one), configured.dataset_of(one)
        if dataset not in (None, served):
            raise ConfigError(f"agreement {agreement!r} serves the data set {served!r}: name that")
        covers, known = state.acked_covers, {served: state.acked_ruv}
    if as_json:
        write_json({"covers": covers, "generation": hub.generation} | ruv_facts(known))
        return
    for name, one_ruv in known.items():
        if len(known) > 1:
            write_line(f"data set {name}")
        write_line("\n".join(one_ruv.text()))


def ruv_facts(known: Mapping[str, Ruv]) -> dict[str, Any]:
    """RUVs for JSON: `ruv` where there is one, `ruvs` by data set where there are several."""
    if len(known) > 1:
        return {"ruvs": {name: ruv.text() for name, ruv in known.items()}}
    return {"ruv": [line for ruv in known.values() for line in ruv.text()]}


def _picked(hub: HubState, dataset: str | None) -> Mapping[str, Ruv]:
    if dataset is None:
        return hub.ruvs
    if dataset not in hub.ruvs:
        known = ", ".join(hub.ruvs) or "none is known"
        raise ConfigError(f"there is no data set {dataset!r}: use one of {known}")
    return {dataset: hub.ruvs[dataset]}


def lacks(
    agreement: AgreementName, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False
) -> None:
    """Show what a consumer lacks by its own last word, and where sending it starts."""
    configured, reader = opened(config)
    found = facts(configured, reader, _agreement(configured, agreement))
    if as_json:
        write_json(found)
    else:
        _show(found)


def facts(config: Config, reader: Reader, agreement: AgreementConfig) -> dict[str, Any]:
    """What `lacks --json` says; `replicas`: rid by rid, all that either side knows of."""
    hub = committed(reader)
    rid = config.replica(agreement.consumer).rid
    state = _state_of(hub, agreement)
    dataset = config.dataset_of(agreement)
    known, consumer = hub.ruv_of(dataset), acked(hub, state, rid, dataset)
    lacking = lack(known, consumer)
    tables = config.tables_of(agreement)
    changes, refreshes = reader.to_be_sent(rid, tables, state.acked_covers, consumer)
    names = names_of(config)
    return {
        "agreement": agreement.name,
        "consumer": agreement.consumer,
        "state": state.status_text,
        "supplier": {"covers": hub.hub_epoch, "ruv": known.text()},
        "acked": {"covers": state.acked_covers, "ruv": state.acked_ruv.text()},
        "replicas": [
            {
                "rid": of,
                "replica": names.get(of, str(of)),
                "need": need,
                "is_own": of == rid,
                "start": _start(lacking.starts.get(of)),
                "stop": lacking.stop.max_of(of),
                "changes": changes.get(of, 0),
            }
            for of, need in lacking.needs.items()
        ],
        "anchor": _anchor(lacking, names),
        "stop": lacking.stop.text(),
        "refused": _refused(reader, lacking, state, dataset),
        "changes": sum(changes.values()),
        "refreshes": refreshes,
    }


def _agreement(config: Config, name: str) -> AgreementConfig:
    known = {agreement.name: agreement for agreement in config.agreements}
    if name not in known:
        listed = ", ".join(known) or "none is configured"
        raise ConfigError(f"there is no agreement {name!r}: use one of {listed}")
    return known[name]


def _state_of(hub: HubState, agreement: AgreementConfig) -> AgreementState:
    return hub.agreements.get(agreement.name, AgreementState(agreement.name, 0))


def _in_log(reader: Reader, csn: str) -> bool:
    found = reader.changelog({"csn": csn, "kind": "change"}, columns=["csn"])
    return bool(found.num_rows)


def _start(start: Anchor | None) -> dict[str, str] | None:
    return {"csn": start.csn, "start": "at" if start.at else "after"} if start else None


def _anchor(lacking: Lack, names: Mapping[int, str]) -> dict[str, str] | None:
    """The anchor, the replica whose start it is, and why that has one."""
    start = _start(lacking.anchor)
    if start is None:
        return None
    rid = rid_of(start["csn"])
    return start | {"replica": names.get(rid, str(rid)), "need": lacking.needs[rid]}


def _refused(
    reader: Reader, lacking: Lack, state: AgreementState, dataset: str
) -> dict[str, str] | None:
    """Why nothing can be sent without a gap: purged and missing are mended differently."""
    hub = committed(reader)
    gap = refused(lacking, hub.purge_ruv_of(dataset), lambda csn: _in_log(reader, csn))
    if gap is not None:
        return {"gap": gap.gap, "csn": gap.start.csn, "why": str(gap)}
    epochs = epochs_purged(state.acked_covers, hub.purge_epoch)
    return {"gap": Gap.PURGED, "why": str(epochs)} if epochs else None


def _show(found: dict[str, Any]) -> None:
    supplier, acked, anchor = found["supplier"], found["acked"], found["anchor"]
    reason = f"{_start_text(anchor)}, for {anchor['replica']} is {anchor['need']}" if anchor else ""
    write_pairs(
        [
            ("agreement", f"{found['agreement']} to {found['consumer']}, {found['state']}"),
            ("hub", "\n".join([f"hub epoch {supplier['covers']}", *supplier["ruv"]])),
            ("consumer", "\n".join([f"covers {acked['covers']}", *acked["ruv"]])),
            ("anchor", reason or "none: no fresh change is lacking"),
            ("stop", "\n".join(found["stop"])),
            ("to be sent", f"{found['changes']} changes, {found['refreshes']} refreshes"),
            *([("refused", found["refused"]["why"])] if found["refused"] else []),
        ]
    )
    write_line()
    write_table(
        ("rid", "replica", "need", "start", "stop", "to be sent"),
        (
            (
                r["rid"],
                r["replica"],
                f"{r['need']}, its own" if r["is_own"] else r["need"],
                _start_text(r["start"]) if r["start"] else None,
                r["stop"],
                r["changes"],
            )
            for r in found["replicas"]
        ),
    )


def _start_text(start: Mapping[str, str]) -> str:
    return f"{start['start']} {start['csn']}"
