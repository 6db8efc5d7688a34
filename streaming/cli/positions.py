"""`ruv` and `lacks`: what the hub knows, and what a consumer lacks of it."""

from typing import Annotated, Any

import typer

from checkpoints.reader import Reader
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, names_of, opened
from streaming.cli.level import acked
from streaming.cli.output import as_counts, write_json, write_line, write_pairs
from streaming.config import Config
from streaming.config_sections import AgreementConfig
from streaming.core.agreement import Anchor, lack, refused
from streaming.core.errors import ConfigError, StateError
from streaming.core.state import AgreementState, HubState

AgreementName = Annotated[str, typer.Argument(metavar="AGREEMENT", help="The agreement's name.")]
OfAgreement = Annotated[
    str | None,
    typer.Option("--agreement", metavar="AGREEMENT", help="The consumer's own last word instead."),
]


def ruv(
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    agreement: OfAgreement = None,
) -> None:
    """Show the hub's RUV in the text form of 389 Directory Server."""
    configured, reader = opened(config)
    hub = _hub(reader)
    covers, known = hub.hub_epoch, hub.ruv
    if agreement is not None:
        state = _state_of(hub, _agreement(configured, agreement))
        covers, known = state.acked_covers, state.acked_ruv
    if as_json:
        write_json({"covers": covers, "generation": hub.generation, "ruv": known.text()})
    else:
        write_line("\n".join(known.text()))


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
    """What `lacks --json` says."""
    hub = _hub(reader)
    rid = config.replica(agreement.consumer).rid
    state = _state_of(hub, agreement)
    consumer = acked(hub, state, rid)
    lacking = lack(hub.ruv, consumer)
    stop = refused(lacking, hub.purge_ruv, lambda csn: _in_log(reader, csn))
    tables = config.tables_of(agreement)
    changes, refreshes = reader.to_be_sent(rid, tables, state.acked_covers, consumer)
    names = names_of(config)
    return {
        "agreement": agreement.name,
        "consumer": agreement.consumer,
        "state": state.state,
        "supplier": {"covers": hub.hub_epoch, "ruv": hub.ruv.text()},
        "acked": {"covers": state.acked_covers, "ruv": state.acked_ruv.text()},
        "needs": {names.get(of, str(of)): need.value for of, need in lacking.needs.items()},
        "anchor": _anchor(lacking.anchor),
        "stop": lacking.stop.text(),
        "refused": str(stop) if stop else None,
        "changes": changes,
        "refreshes": refreshes,
    }


def _hub(reader: Reader) -> HubState:
    if reader.commit is None:
        raise StateError(f"no batch is committed in {reader.root} yet: nothing is known")
    return reader.commit.state


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


def _anchor(anchor: Anchor | None) -> dict[str, str] | None:
    return {"csn": anchor.csn, "start": "at" if anchor.at else "after"} if anchor else None


def _show(found: dict[str, Any]) -> None:
    supplier, acked, anchor = found["supplier"], found["acked"], found["anchor"]
    start = f"{anchor['start']} {anchor['csn']}" if anchor else "none: no fresh change is lacking"
    needs = as_counts(found["needs"])
    write_pairs(
        [
            ("agreement", f"{found['agreement']} to {found['consumer']}, {found['state']}"),
            ("hub", "\n".join([f"hub epoch {supplier['covers']}", *supplier["ruv"]])),
            ("consumer", "\n".join([f"covers {acked['covers']}", *acked["ruv"]])),
            ("replicas", needs),
            ("anchor", start),
            ("stop", "\n".join(found["stop"])),
            ("to be sent", f"{found['changes']} changes, {found['refreshes']} refreshes"),
            *([("refused", found["refused"])] if found["refused"] else []),
        ]
    )
